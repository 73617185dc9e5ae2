"""Reuters-1200: 1200 news in five languages. A substitute, never to be reported as Reuters.

The Reuters of the literature has 18758 samples (`reuters`); this is a smaller collection of the
same kind, tf-idf of 2000 words per language, and ten dimensions each by our own SVD. Research use.
"""

from __future__ import annotations

from vedute.data.views import Views
from vedute.datasets._files import Facts, find_npz, folder, from_npz

LANGUAGES = ("english", "french", "german", "italian", "spanish")
FEATURES = {  # numbers per language, checksum
    "dim10": (10, "da6e72ca2ab5afc73f8700191a7f7c2b93e414dd849fd07a706e28442edfab77"),
    "tfidf": (2000, "c0a14aa7e8f27aa50b63794be486b949165899f5573a4a0f190f189eb7336dd4"),
}
FACTS = {
    k: Facts(f"reuters1200_{k}", dict.fromkeys(LANGUAGES, width), 1200, 6, (200,) * 6, sha256)
    for k, (width, sha256) in FEATURES.items()
}


def load(features: str = "dim10") -> Views:
    """1200 samples, five views, six kinds; `features` is "dim10" or "tfidf"."""
    if features not in FACTS:
        raise ValueError(f"no features {features!r}; choose from {', '.join(FACTS)}")
    facts = FACTS[features]
    path = find_npz(facts.name)
    if path is None:
        raise FileNotFoundError(
            f"{facts.name}.npz is not in {folder()}; copy it, or set VEDUTE_DATA"
        )
    return from_npz(path, facts)
