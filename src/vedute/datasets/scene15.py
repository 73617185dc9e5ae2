"""Scene-15: photographs of fifteen kinds of places, as GIST, PHOG and LBP features.

The file of the authors of Completer (CVPR 2021); research use. Downloaded at first use.
"""

from __future__ import annotations

from vedute.data.views import Views
from vedute.datasets._files import Facts, load_files, read_cell

ADDRESS = (
    "https://github.com/XLearning-SCU/2021-CVPR-Completer/raw/"
    "8fff5f83d823bbc46c96088bb0c1385ca7b9e560/data/Scene-15.mat"
)
SHA256 = "7addaa43002f907cb142f53daf48da0811e432f6ea365a05b19089ddf78c4c9e"
COUNTS = (210, 215, 216, 241, 260, 289, 292, 308, 311, 315, 328, 356, 360, 374, 410)
FACTS = Facts("scene15", {"gist": 20, "phog": 59, "lbp": 40}, 4485, 15, COUNTS, SHA256)


def load() -> Views:
    """4485 samples, three views, fifteen kinds of places."""
    return load_files(FACTS, lambda path: read_cell(path, "X", "Y"), ADDRESS)
