"""Untrained models inside tests."""

from vedute.nn.likelihoods import LIKELIHOODS


def model_of(hp, shapes, kinds="normal"):
    """The model of an estimator for views of these shapes; kinds: one likelihood, or one each."""
    each = [kinds] * len(shapes) if isinstance(kinds, str) else kinds
    names = [f"v{v}" for v in range(len(shapes))]
    length = hp.epochs or hp.steps or 500
    return hp.build(shapes, [LIKELIHOODS[kind] for kind in each], names, length)
