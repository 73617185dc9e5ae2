"""BestPair: a method for two views on data that have more.

The method is fitted on every pair of views, and the best pair is kept. Views outside it are ignored
and imputed with their means. Samples with neither view of the pair get the mean representation, the
largest cluster and mean-fill. `select` defines "best":

    stability   agreement between halves of the samples with both views on n_clusters clusters of
                the representation (see `clustering`), on ten if n_clusters is None; ties are broken
                by the silhouette
    hidden      1 - error / error of mean-fill, on views held out from all pairs; chosen
                pair is then refitted on all data. Meant for imputation: views that predict each
                other best are the most alike, and add the least to clusters
    labels      accuracy of the clusters against `y`, as in papers; needs labels that users lack
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from dataclasses import field, replace
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from vedute.data.holdout import FEWEST_HIDDEN, HoldOut
from vedute.data.views import Views
from vedute.estimators import clustering, progress, saving
from vedute.estimators import settings as declared
from vedute.estimators.base import Estimator, saveable
from vedute.estimators.context import FitContext
from vedute.estimators.learner import Learner
from vedute.estimators.method import Ability, Array
from vedute.estimators.settings import choice, estimator, setting
from vedute.metrics import scores
from vedute.scale import backends

SHARED = ("n_clusters", "kinds", "likelihood", "columns", "random_state", "verbose")
SELECT = ("stability", "hidden", "labels")
SCALING = ("auto", "standard", "minmax", "none")
MIN_COMMON_ROWS = 2  # least number of samples with both views of a pair
DEFAULT_CLUSTERS = 10  # clusters whose stability counts if n_clusters is None
Score = tuple[float, float]  # what a pair is chosen by, and the tie-breaker
Pair = tuple[int, int]


@estimator
class BestPair(Estimator):
    """The best two of many views, for a method that takes two: `BestPair(DCCA(), n_clusters=10)`.

    Set what all estimators have (n_clusters, random_state, ...) on BestPair, not on the method
    inside.

    Examples
    --------
    >>> import numpy as np
    >>> from vedute import DCCA, BestPair
    >>> X = list(np.random.default_rng(0).normal(size=(3, 60, 5)))
    >>> model = BestPair(DCCA(), n_clusters=3, random_state=0).fit(X)
    >>> len(model.chosen())
    2
    """

    method: Estimator = field(
        kw_only=False,
        metadata={declared.KEY: declared.Setting("A method for two views, not fitted.")},
    )
    select: str = choice(SELECT, "What the best pair is best at; `labels` takes y in `fit`.")
    pair: tuple[str, str] | None = setting(None, "The names of two views, which skips the search.")
    scaling: str = choice(SCALING, "How each feature is scaled; `auto`: as the method has it.")

    verbs = (*Estimator.verbs, "chosen")
    attributes: ClassVar = {
        "pair_": "The positions of the two views.",
        "scores_": "The score of every pair that was tried.",
        "best_": "The method, fitted on the best pair.",
        "history_": "The training history of that method.",
        "middle_": "(D,) array, the representation of samples with neither view.",
        "largest_": "The cluster of samples with neither view.",
    }

    generates = Ability(lambda _: False)  # the method inside knows two views, not all

    generative = property(lambda self: self.method.generative)
    shrinks = property(lambda self: self.method.shrinks)
    soft = property(lambda self: self.method.soft)
    # held-out views are used in the end if they choose a pair
    relearns = property(lambda self: self.generative and not self.method.hides())

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Fit to X; `y` is used only to choose the pair if select="labels".

        groups: one value per sample; samples with the same value stay together
        """
        self._y = np.asarray(y) if self.select == "labels" and y is not None else None
        try:
            return super().fit(X, groups=groups)
        finally:
            del self._y

    def generate(self, n: int, random_state: Any = None) -> dict[str, Array]:
        raise TypeError("BestPair cannot generate: the method inside knows two views, not all")

    def saved(self) -> saving.Saved:
        """The state that `save` writes; the method inside is a dict."""
        method, params, learned = super().saved()
        inside = self.best_.saved()
        kept = {"method": inside.method, "params": saveable(self.method.get_params(deep=False))}
        return saving.Saved(method, params | {"method": kept}, learned | {"best_": inside.learned})

    def restore(self, learned: dict[str, Any]) -> Self:
        super().restore({k: v for k, v in learned.items() if k != "best_"})
        self.best_ = self.inside(self.chosen()).restore(learned["best_"])
        return self

    def chosen(self) -> Pair:
        """The positions of the chosen views."""
        return self.pair_

    def unwrapped(self) -> Estimator:
        """The method with these settings, as passed to `for_views`."""
        return _with(self.method, {k: getattr(self, k) for k in SHARED})

    # Learning.

    def check(self, raw: Views) -> None:
        super().check(raw)
        if self.select == "hidden" and not self.generative:
            raise TypeError(self.cannot("predict hidden views"))
        if len(raw.x) < 2:
            raise ValueError(f"BestPair chooses two of several views, X has {len(raw.x)}")
        if self.pair is not None and len(set(self.pair) & set(raw.names)) != 2:
            valid, requested = ", ".join(raw.names), ", ".join(map(str, self.pair))
            raise ValueError(f"pair names two of {valid}, got {requested}")
        default, name = type(self.method)(), type(self.method).__name__
        for k in SHARED:
            if getattr(self.method, k) != getattr(default, k):
                raise ValueError(f"{k} is set beside the method: BestPair({name}(...), {k}=...)")
        if self.select == "labels" and (self._y is None or self.n_clusters is None):
            raise ValueError('select="labels" takes a number of clusters, and y in fit')
        if self._y is not None and self._y.shape != (len(raw),):
            raise ValueError(f"y has shape {self._y.shape}; expected one label per sample")

    @property
    def learner(self) -> PairLearner:
        return PairLearner(self)

    def hides(self) -> bool:
        choosing = self.select == "hidden" and self.pair is None
        return self.generative and (choosing or self.method.hides())

    def learn(self, data: Views, held: HoldOut | None, context: FitContext) -> None:
        first = context.number == 1
        pairs = self._candidates(data) if first else [self.chosen()]
        self.scores_: dict[str, float] = {} if first else self.scores_
        best, one = (-np.inf, -np.inf), len(pairs) == 1
        shared = self, data, held, context, one
        bound = bool(context.callbacks or context.checkpoint)  # to this process
        outcomes = backends.outcomes(_fitted, shared, pairs, here=one or bound)
        for pair, outcome in zip(pairs, outcomes, strict=True):
            if isinstance(outcome, BrokenExecutor):
                raise outcome
            model, score, state = outcome
            torch.set_rng_state(state)  # the state after a fit in this process
            if not one:
                self.scores_["+".join(data.names[v] for v in pair)] = score[0]
            if score > best:
                best, self.pair_, self.best_ = score, pair, model
            if context.interrupted:  # keep the best so far
                break
        if not one:
            self.log("  ".join(f"{names} {score:.3f}" for names, score in self.scores_.items()))
        self.middle_ = self.best_.embed(select_pair(data, self.chosen())[1]).mean(0)
        self.take("history_")

    def _candidates(self, data: Views) -> list[Pair]:
        """Pairs of views that enough samples have, at least one of the two and both."""
        wanted = data.names if self.pair is None else self.pair
        fewest = self.n_clusters if isinstance(self.n_clusters, int) else 1
        eligible = []
        for pair in combinations(sorted(map(data.names.index, wanted)), 2):
            count = data.mask[:, list(pair)].sum(1)
            if (count == 2).sum() >= MIN_COMMON_ROWS and (count > 0).sum() >= fewest:
                eligible.append(pair)
        if not eligible:
            raise ValueError(
                f"no two views are observed together in {MIN_COMMON_ROWS} or more samples; "
                "add samples with both views of a pair"
            )
        return eligible

    def parts(self) -> list[Estimator]:
        return [*([self.best_] if hasattr(self, "best_") else []), self.method]

    def trained(self) -> Estimator:
        return self.method

    leading = trained  # its settings decide the length of training, too

    def forget_checkpoint(self) -> None:
        self.method.forget_checkpoint()

    def inside(self, pair: Pair) -> Estimator:
        """The unfitted method with the settings and units of BestPair, for two views."""
        overrides = {k: getattr(self, k) for k in ("n_clusters", "random_state", "verbose")}
        overrides |= {} if self.scaling == "auto" else {"scaling": self.scaling}
        model = _with(self.method, overrides)
        model.views_, model.seed_ = [self.views_[v] for v in pair], self.seed_
        model.n_features_in_ = sum(s.mean.size for s in model.scalers)
        return model

    def score_of(self, model: Estimator, pair: Pair, data: Views, held: HoldOut | None) -> Score:
        """The score of a pair, by the criterion `select`."""
        if self.select == "labels":
            assert self._y is not None
            return scores.clustering_accuracy(self._y, cluster_labels(model, pair, data)), 0.0
        if self.select == "hidden":
            if held is None:
                raise ValueError("too few views can be hidden to choose by; set select='stability'")
            part, gain = hidden_in(held, pair), 0.0  # views outside the pair gain nothing
            for v, out in enumerate(model.decode(part.inputs) if len(part.hidden) else ()):
                better = part.errors(part.means[v], v) - part.errors(torch.from_numpy(out[0]), v)
                gain += float(better[part.hidden[:, v]].sum())
            means = (held.errors(m, v)[held.hidden[:, v]].sum() for v, m in enumerate(held.means))
            return gain / max(float(sum(means)), 1e-12), 0.0
        both = select_pair(data[data.mask[:, list(pair)].all(1)], pair)[1]
        return cluster_quality(clustering.finite(model.embed(both)), self.n_clusters, self.seed_)

    # Results for two views, extended to all views and rows.

    def extended(self, verb: Callable[[Views], Array | None], data: Views, outside: Array) -> Array:
        """The results of a verb for rows with either view; for the others, (*shape,)."""
        rows, subset = select_pair(data, self.chosen())
        results = np.tile(outside, (len(data), *[1] * outside.ndim))
        if rows.any():
            results[rows] = verb(subset)
        return results

    def embed(self, data: Views) -> Array:
        return self.extended(self.best_.embed, data, self.middle_)

    def decode(self, data: Views, draws: int = 0) -> list[Array]:
        if not self.generative:
            return super().decode(data, draws)
        size = max(draws, 1), len(data)
        means = (s.mean.astype(np.float32) for s in self.scalers)
        decoded = [np.broadcast_to(m, (*size, *m.shape)).copy() for m in means]
        rows, subset = select_pair(data, self.chosen())
        if rows.any():
            for v, x in zip(self.chosen(), self.best_.decode(subset, draws), strict=True):
                decoded[v][:, rows] = x
        return decoded

    def soft_labels(self, data: Views) -> Array | None:
        if not self.soft:
            return None
        assert isinstance(self.n_clusters, int)
        largest = np.eye(self.n_clusters, dtype=np.float32)[self.largest_]
        return self.extended(self.best_.soft_labels, data, largest)

    def take(self, *names: str) -> None:
        """Copy these attributes from the method inside, if it has them."""
        for name in names:
            if hasattr(self.best_, name):
                setattr(self, name, getattr(self.best_, name))

    def cannot(self, verb: str) -> str:
        return self.method.cannot(verb)


class PairLearner(Learner):
    """The learner of BestPair: clusters are those of the method inside."""

    model: BestPair

    def cluster(self, data: Views) -> None:
        model = self.model
        if model.n_clusters is None:
            return
        model.labels_ = cluster_labels(model.best_, model.chosen(), data)
        model.largest_ = int(np.bincount(model.labels_).argmax())
        model.take("n_clusters_", "stability_", "centers_")

    def labels(self, data: Views, z: Array | None = None) -> NDArray[np.int64]:
        self.require_clusters()
        model = self.model
        return model.extended(model.best_.learner.labels, data, np.array(model.largest_, np.int64))


def cluster_quality(z: Array, n_clusters: Any, seed: int) -> Score:
    """Stability and separation of the clusters of a pair's representation z (n, D)."""
    K = n_clusters if isinstance(n_clusters, int) else DEFAULT_CLUSTERS
    both = clustering.stability(z, K, seed), clustering.separation(z, K, seed)
    return round(both[0], 5), round(both[1], 5)  # as in records


def _fitted(
    shared: tuple[BestPair, Views, HoldOut | None, FitContext, bool], pair: Pair
) -> tuple[Estimator, Score, torch.Tensor]:
    """Fit the method on a pair; return it, its score unless it is the only one, and the state of
    the RNG."""
    best, data, held, context, only = shared
    model, subset = best.inside(pair), select_pair(data, pair)[1]
    # a pair may be fitted for comparison, and once more
    inner = context.child(model, f"pair-{pair[0]}-{pair[1]}-{context.number}")
    model.learner.check(subset)
    watched = None if held is None else hidden_in(held, pair)
    few = watched is None or len(watched.hidden) < FEWEST_HIDDEN
    torch.manual_seed(best.seed_)  # independent of the pairs before
    with progress.task("+".join(subset.names)):
        model.learn(subset, None if few else watched, inner)
    context.interrupted |= inner.interrupted
    score = (0.0, 0.0) if only else best.score_of(model, pair, data, held)
    return model, score, torch.get_rng_state()


def for_views(estimator: Estimator, n_views: int) -> Estimator:
    """Wrap the estimator in a BestPair if it takes two views and the data have more."""
    if not estimator.two_views or n_views <= 2:
        return estimator
    default = type(estimator)()
    inside = _with(estimator, {k: getattr(default, k) for k in SHARED})
    return BestPair(inside, **{k: getattr(estimator, k) for k in SHARED})


def _with(estimator: Estimator, settings: dict[str, Any]) -> Estimator:
    """An unfitted copy with other settings; the user's callbacks are shared, not copied."""
    copy: Estimator = clone(estimator)
    kept = {k: v for k, v in estimator.get_params(deep=False).items() if k in declared.UNSAVED}
    copy.set_params(**kept, **settings)
    return copy


def select_pair(data: Views, pair: Pair) -> tuple[NDArray[np.bool_], Views]:
    """Rows with at least one of the two views, (n,) bool, and these rows of the pair."""
    both = data.pick(*pair)
    rows = both.mask.any(1)
    subset = both[rows]
    index = torch.arange(len(subset), device=subset.mask.device)
    return rows.cpu().numpy(), replace(subset, index=index)


def hidden_in(held: HoldOut, pair: Pair) -> HoldOut:
    """The hidden views of the pair whose other view is observed."""
    means, weights = (tuple(values[v] for v in pair) for values in (held.means, held.weights))
    both = HoldOut(held.inputs.pick(*pair), held.truth.pick(*pair), None, means, weights)
    return both.part(both.hidden.any(1) & both.inputs.mask.any(1))


def cluster_labels(model: Estimator, pair: Pair, data: Views) -> NDArray[np.int64]:
    """Clusters by the method's rule, (n,); rows with neither view join the largest."""
    rows, subset = select_pair(data, pair)
    model.embedding_ = model.embed(subset)
    model.learner.cluster(subset)
    labels = np.full(len(data), np.bincount(model.labels_).argmax(), np.int64)
    labels[rows] = model.labels_
    del model.embedding_, model.labels_
    return labels
