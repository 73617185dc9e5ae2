"""Settings of many methods, with different defaults."""

from functools import partial
from typing import Any

from vedute.estimators.settings import Choice, Range, choice, length, setting
from vedute.nn.convolutions import LARGE, NETWORKS, SMALL

BETAS = Range(0.05, 20.0, log=True, factor="beta")  # factor of every beta of a method
LATENTS = Choice((8, 16, 32, 64, 128))
LAYERS = Choice(((64,), (128,), (128, 128), (256, 256)))
NEIGHBORS = Choice((3, 5, 10, 15, 20, 30, 50))

# Declarations that lack a default, and some of them a meaning.
latent_dim = partial(setting, meaning="Numbers in a latent.", at_least=1, tune=LATENTS)
beta = partial(setting, at_least=0, tune=BETAS)
rec_weight = partial(setting, meaning="Weight of the reconstruction.", at_least=0)
share = partial(setting, at_least=0, below=1)
view_dropout = partial(share, meaning="Share of views hidden and predicted.", tune=Range(0.0, 0.6))
cooldown = partial(
    length, meaning="Time without dropout at the end, at a tenth of the learning rate."
)
n_neighbors = partial(setting, at_least=1, tune=NEIGHBORS)


def hidden(default: tuple[int, ...], more: str = "") -> Any:
    meaning = f"Sizes of the hidden layers of encoders and decoders{more}."
    return setting(default, meaning, at_least=1, tune=LAYERS)


def network() -> Any:
    meaning = f"For images, large (`{LARGE}`) or small (`{SMALL}`) convolutions, or `mlp`; `auto`: "
    return choice(NETWORKS, f"{meaning}small on a CPU, large on a GPU.")


def layer_dropout(default: float | None, more: str = "") -> Any:
    meaning = f"Dropout of encoders; None: 0.2, below 1000 rows 0.4{more}."
    return share(default, meaning, tune=Range(0.0, 0.5))


def balance(default: float | None, more: str = "") -> Any:
    meaning = "A view weighs its effective dimensions to this power; None: "
    return setting(default, f"{meaning}0.2, under 1000 rows 0.5{more}.")


def check_shared(shared_dim: int | None, latent_dim: int) -> None:
    """Refuse more shared numbers than a latent has."""
    if (shared_dim or 0) > latent_dim:
        both = f"{shared_dim} and {latent_dim}"
        raise ValueError(f"shared_dim must be at most latent_dim, got {both}")
