"""Whether correspondences predict the error: correlations, table and figure of made-up records."""

from __future__ import annotations

import pytest


@pytest.fixture
def script(script_of):
    return script_of("experiments.correspondence")


def runs(script, distances, errors, dataset="cub"):
    """One setting after the other, one seed per number."""
    for label, own, wrong in zip(script.PARTS, distances, errors, strict=True):
        for seed, (predicted, error) in enumerate(zip(own, wrong, strict=True)):
            scores = {"predicted": predicted, "error": error, "by_target": 0.5, "by_source": 0.0}
            yield {"dataset": dataset, "label": label, "seed": seed, "scores": scores}


DISTANCES = [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]
ERRORS = [[0.3, 0.2, 0.1], [0.6, 0.5, 0.4], [0.9, 0.8, 0.7], [1.2, 1.1, 1.0]]


def test_correlations_over_settings_and_over_seeds_are_told_apart(script):
    over_settings, over_seeds = script.correlations([*runs(script, DISTANCES, ERRORS)])
    assert over_settings == pytest.approx(1)
    assert over_seeds == pytest.approx(-1)


def test_the_table_has_means_over_seeds_and_the_figure_every_run(script):
    found = [r for d in ("cub", "scene15") for r in runs(script, DISTANCES, ERRORS, d)]
    lines = script.table(found).splitlines()
    assert lines[2] == "| cub, permutation + hiding | 2.00 | 0.50 | 0.00 | 0.200 |"
    assert lines[5] == "| cub, neither | 11.00 | 0.50 | 0.00 | 1.100 |"
    assert lines[-2:] == ["| cub | +1.00 | -1.00 |", "| scene15 | +1.00 | -1.00 |"]
    panels = script.figure(found).axes
    assert [ax.get_title(loc="left") for ax in panels[:2]] == ["cub", "scene15"]
    assert sum(len(drawn.get_offsets()) for drawn in panels[0].collections) == 12
