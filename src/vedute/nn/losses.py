"""Loss terms that several methods share, as pure functions of tensors."""

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn.functional import normalize

from vedute.data.views import Views
from vedute.nn import shards
from vedute.nn.cuda_streams import in_parallel
from vedute.nn.likelihoods import Likelihoods

RADIUS = 3.0**0.5


def view_errors(
    likelihoods: Likelihoods,
    decoders: Iterable[Callable[[Tensor], Tensor]],
    codes: Sequence[Tensor],
    batch: Views,
    mean: bool,
) -> Tensor:
    """Return -log p(x_v | out_v) up to a constant of every view, over its observed entries,
    (..., B, L): averaged over them (`mean`), independent of the width of the view, or summed.

    out_v (..., B, *shape_v) is decoded from codes[v] (..., B, D), on a CPU only for rows that have
    view v; the error of the others is zero.
    """
    present, decode = batch.present(), [*decoders]

    def error(v: int) -> Tensor:
        rows: slice | Tensor = slice(None) if present is None else present[v]
        x, holes, context = batch.x[v][rows], batch.holes[v], batch.context
        if context:
            context = {name: t[rows] for name, t in context.items()}
        e = likelihoods[v].error(decode[v](codes[v][..., rows, :]).float(), x, context)
        axes = tuple(range(-x.ndim + 1, 0))
        if holes is None:
            e = e.mean(axes) if mean else e.sum(axes)
        else:
            holes = holes[rows]
            e = e.masked_fill(holes, 0.0).sum(axes)
            e = e / (~holes).sum(axes).clamp(min=1) if mean else e
        if present is None:
            return e
        return e.new_zeros(*e.shape[:-1], len(batch)).index_copy(-1, present[v], e)

    tensors = filter(torch.is_tensor, (*codes, *batch.x, *batch.holes, *batch.context.values()))
    return torch.stack(in_parallel(error, range(len(codes)), tuple(tensors)), dim=-1)


def per_view_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Sum over views the mean over the samples that have the view; values and mask (B, L)."""
    seen = values.masked_fill(~mask, 0.0).sum(0)
    return (seen / shards.number_with(mask)).sum()


def log_student_t(z: Tensor, centers: Tensor) -> Tensor:
    """Return log q of soft labels by Student's t with one degree of freedom,
    q_k ~ 1 / (1 + |z - u_k|^2): z (..., D), centers u (..., K, D) -> (..., K)."""
    return (-torch.log1p((z.unsqueeze(-2) - centers).square().sum(-1))).log_softmax(-1)


def sharpen(q: Tensor) -> Tensor:
    """Return q^2 normalised per row, (..., K): likely clusters become likelier."""
    return q.square() / q.square().sum(-1, keepdim=True)


def match_clusters(cost: Tensor) -> Tensor:
    """Return the partner of each row in the optimal one-to-one matching: cost (K, K) -> (K,)."""
    _, partner = linear_sum_assignment(cost.detach().cpu().double().numpy())
    return torch.from_numpy(partner).to(cost.device)


def spectral_contrastive(a: Tensor, b: Tensor) -> Tensor:
    """Return sample i's term of -2/B sum_i a_i.b_i + 1/(B(B-1)) sum_{i!=j} (a_i.b_j)^2, vectors
    cut to the length RADIUS: (..., B, D) -> (..., B)."""
    a, b = (h * (RADIUS / h.norm(dim=-1, keepdim=True).clamp(min=RADIUS)) for h in (a, b))
    B = a.shape[-2]
    positive = (a * b).sum(-1)
    negatives = (a @ b.mT).square().sum(-1) - positive.square()
    return negatives / max(1, B * (B - 1)) - 2.0 / B * positive


def cluster_contrastive(p: Tensor, q: Tensor, tau: float, negatives: str) -> Tensor:
    """Contrast the columns of two soft labelings of the same samples, (..., B, K) -> (...).

    With s the cosine of columns and k' the counterpart of k, the mean over all 2K columns of
    -log e^(s(k, k')/tau) / (e^(s(k, k')/tau) + sum of e^(s/tau) over the negatives), the other
    columns of the "same" labeling or of "both".
    """
    if negatives not in ("same", "both"):
        raise ValueError(f"negatives must be same or both, got {negatives!r}")
    K = p.shape[-1]
    columns = normalize(torch.cat([p, q], dim=-1).mT, dim=-1)  # (..., 2K, B)
    s = columns @ columns.mT / tau
    at = torch.arange(2 * K, device=s.device)
    counterpart = at == at.roll(K)[:, None]
    others = at != at[:, None]
    if negatives == "same":
        others = others & (at // K == at[:, None] // K)
    total = s.masked_fill(~(others | counterpart), -torch.inf).logsumexp(-1)
    return (total - (s * counterpart).sum(-1)).mean(-1)


def entropy_balance(p: Tensor) -> Tensor:
    """Return log K - H(mean over samples), zero for equal clusters: (..., B, K) -> (...)."""
    mean = p.mean(-2)
    return math.log(p.shape[-1]) + (mean * (mean + 1e-8).log()).sum(-1)


def nt_xent(a: Tensor, b: Tensor, tau: float) -> Tensor:
    """Return the normalised temperature-scaled cross-entropy, (..., B, D) -> (...): mean over 2B of
    -log e^(s(i, i')/tau) / sum_{j != i} e^(s(i, j)/tau), with s the inner product."""
    B = a.shape[-2]
    both = torch.cat([a, b], dim=-2)
    s = both @ both.mT / tau
    alone = torch.eye(2 * B, dtype=torch.bool, device=s.device)
    positive = (a * b).sum(-1).mean(-1) / tau  # the same in both directions
    return s.masked_fill(alone, -torch.inf).logsumexp(-1).mean(-1) - positive


def whitened(h1: Tensor, h2: Tensor, ridge: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return T = C1^-1 S12 C2^-T, whose singular values are the canonical correlations, and C1, C2,
    S_jj + ridge I = C_j C_j': h1, h2 (n, D), centred here -> (D, D) each, in float64."""
    a, b = (h.double() - h.double().mean(0) for h in (h1, h2))
    free = max(len(a) - 1, 1)
    eye = ridge * torch.eye(a.shape[1], dtype=a.dtype, device=a.device)
    c1, c2 = (torch.linalg.cholesky_ex(x.t() @ x / free + eye)[0] for x in (a, b))
    half = torch.linalg.solve_triangular(c1, a.t() @ b / free, upper=False)
    return torch.linalg.solve_triangular(c2, half.t(), upper=False).t(), c1, c2


def cca_corr(h1: Tensor, h2: Tensor, ridge: float) -> Tensor:
    """Return the D canonical correlations of h1 and h2 (n, D), descending, in float64. Their
    gradient needs the singular vectors only as a product, so it is finite at ties."""
    values: Tensor = torch.linalg.svdvals(whitened(h1, h2, ridge)[0])
    return values


def mutual_information(p: Tensor, q: Tensor, alpha: float) -> Tensor:
    """Return I(P) + alpha (H(P_a) + H(P_b)), in float64, of the joint P_ab = mean of p_a q_b over
    the samples, made symmetric: p, q (B, K) on the simplex (Ji et al., ICCV 2019)."""
    joint = p.double().t() @ q.double()
    joint = (joint + joint.t()) / (2 * joint.sum())
    parts = joint.sum(1, keepdim=True), joint.sum(0, keepdim=True), joint
    row, column, joint = (t.clamp(min=torch.finfo(t.dtype).eps) for t in parts)
    weight = alpha + 1
    return (joint * (joint.log() - weight * row.log() - weight * column.log())).sum()
