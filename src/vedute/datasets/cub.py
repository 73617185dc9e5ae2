"""CUB: ten species of birds, as GoogLeNet features of a photograph and doc2vec of a text.

From the Caltech-UCSD Birds-200 features prepared by the authors of ProImp (IJCAI 2023); research
use. Downloaded at first use.
"""

from __future__ import annotations

from vedute.data.views import Views
from vedute.datasets._files import Facts, load_files, read_cell

ADDRESS = (
    "https://github.com/XLearning-SCU/2023-IJCAI-ProImp/raw/"
    "769134bf1d053387db6ffbd77ece999aa4e80c95/data/cub_googlenet_doc2vec_c10.mat"
)
SHA256 = "e346b4bb1bd25bd56ad22564cc1eaf7ef54e5381de704bc371e9e72bbfda6160"
FACTS = Facts("cub", {"image": 1024, "text": 300}, 600, 10, (60,) * 10, SHA256)


def load() -> Views:
    """600 samples, two views, ten species."""
    return load_files(FACTS, lambda path: read_cell(path, "X", "gt"), ADDRESS)
