"""Posterior collapse of MVAE with the prior in every product, without a warm-up of beta.

    VEDUTE_DATA=folder python -m vedute_bench.experiments.mvae_warmup

MVAE is trained on two views of 2000 PolyMNIST samples, half of them incomplete, in 1050 steps of
16. The spread is the mean standard deviation of the representation over the samples; it is zero
if the posterior has collapsed.
"""

from __future__ import annotations

from vedute import drop_views
from vedute.methods.deep.mvae import MVAE
from vedute_bench.datasets import polymnist

CASES = (("always", 0), ("always", 400), ("several", 0))

if __name__ == "__main__":
    views = drop_views(polymnist.load("train")[:2000].pick(1, 3), 0.5, seed=1)
    for expert, warmup in CASES:
        model = MVAE(
            prior_expert=expert,
            warmup=warmup,
            network="polymnist",
            subsample="unimodal",
            latent_dim=512,
            likelihood="laplace",
            scale=1.5,
            rescale=True,
            output="tanh",
            linear_paths=False,
            dropout=0.0,
            balance=0.0,
            view_dropout=0.0,
            cooldown=0,
            weight_decay=0.0,
            beta=2.5,
            lr=5e-4,
            batch_size=16,
            steps=1050,
            early_stopping=False,
            random_state=0,
        ).fit(views)
        terms = {name: round(value, 1) for name, value in model.history_[-1]["terms"].items()}
        spread = model.embedding_.std(0).mean()
        print(f"prior {expert}, warmup {warmup}: {terms}, spread {spread:.2g}", flush=True)
