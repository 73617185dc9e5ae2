"""Classifiers are those of the literature, judge in eval mode, and are made once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from vedute.data.views import Views
from vedute_bench.generation import classifiers
from vedute_bench.generation.classifiers import Classifier, Recipe, accuracy, judges, train

SHORT = Recipe(epochs=8, batch_size=16, dropout=0.1)


def stripes(n, seed=0, views=1):
    """Bytes (n, 3, 28, 28) of three kinds: bright at the top, in the middle or at the bottom."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    x = []
    for v in range(views):
        image = rng.integers(120, size=(n, 3, 28, 28))
        for i, kind in enumerate(y):
            image[i, v, 9 * kind : 9 * kind + 9] += 100
        x.append(image.astype(np.uint8))
    return Views.of(x, y=y)


def labels(views):
    return torch.from_numpy(views.y)


@pytest.mark.parametrize(
    ("shape", "classes", "expected"), [((3, 28, 28), 10, 130_568), ((3, 64, 64), 5, None)]
)
def test_the_network_of_the_literature(shape, classes, expected):
    network = Classifier(shape, classes, Recipe())
    count = sum(p.numel() for p in network.parameters())
    assert expected in (None, count)
    assert network(torch.zeros(2, *shape)).shape == (2, classes)


def test_it_learns_and_judges_without_dropout():
    real, test = stripes(200), stripes(60, seed=1)
    network = train(real.x[0], labels(real), 3, SHORT)
    assert not network.training
    assert accuracy(network, test.x[0], labels(test)) > 0.95
    network.train()  # as somebody may have left it
    first, second = (network.predict(test.x[0]) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(first, network.predict(test.x[0] / 255))


def test_the_seed_decides_and_nobodys_generator_moves():
    real = stripes(40)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    a, b = (train(real.x[0], labels(real), 3, Recipe(epochs=1)) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    pairs = zip(a.parameters(), b.parameters(), strict=True)
    assert all(torch.equal(p, q) for p, q in pairs)
    other = train(real.x[0], labels(real), 3, Recipe(epochs=1, seed=1))
    assert not torch.equal(next(a.parameters()), next(other.parameters()))


def test_a_classifier_is_made_once(tmp_path, monkeypatch):
    real = stripes(40)
    first = train(real.x[0], labels(real), 3, Recipe(epochs=1), cache=tmp_path)
    (file,) = tmp_path.iterdir()
    learn = classifiers._learn
    monkeypatch.setattr(classifiers, "_learn", None)
    again = train(real.x[0], labels(real), 3, Recipe(epochs=1), cache=tmp_path)
    pairs = zip(first.parameters(), again.parameters(), strict=True)
    assert all(torch.equal(p, q) for p, q in pairs)
    monkeypatch.setattr(classifiers, "_learn", learn)
    file.write_bytes(b"junk")  # damaged: made again
    train(real.x[0], labels(real), 3, Recipe(epochs=1), cache=tmp_path)
    assert file.stat().st_size > 1000
    train(real.x[0], labels(real), 3, Recipe(epochs=2), cache=tmp_path)
    train(255 - real.x[0], labels(real), 3, Recipe(epochs=1), cache=tmp_path)
    train(real.x[0], labels(real).roll(1), 3, Recipe(epochs=1), cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_judges_know_what_is_right():
    real, test = stripes(120, views=2), stripes(50, seed=1, views=2)
    per_view, shared, angle = judges(("per_view", "shared", "angle"), real, test, recipe=SHORT)
    assert [j.name for j in (per_view, shared, angle)] == ["coherence", "coherence", "angle"]
    assert per_view.classifiers[0] is not per_view.classifiers[1]
    assert shared.classifiers[0] is shared.classifiers[1]
    assert (shared.answers == labels(test)[:, None]).all()
    assert (angle.answers == torch.tensor([0, 1])).all()
    assert min(j.accuracy for j in (per_view, shared, angle)) > 0.9
    rows = slice(10, 30)
    swapped = angle.wrong(test.x[1][rows], 0, rows)  # the second view, given out as the first
    assert swapped.float().mean() > 0.9
    assert angle.wrong(test.x[1][rows], 1, rows).float().mean() < 0.1


def test_mistakes_get_one_sentence():
    real = stripes(10)
    with pytest.raises(ValueError, match="no judge 'jury'; choose from per_view, shared, angle"):
        judges(["jury"], real, real)
    with pytest.raises(ValueError, match="pass bytes"):
        train(real.x[0].float(), labels(real), 3)
    bare = Views.of([x.numpy() for x in real.x])
    with pytest.raises(ValueError, match="judges need classes"):
        judges(["per_view"], bare, bare)


def test_softened_images_show_the_same():
    flat = torch.full((4, 3, 9, 9), 0.7)
    assert torch.allclose(classifiers._soften(flat, 1.0), flat)  # borders too
    image = torch.rand(4, 3, 9, 9)
    assert classifiers._soften(image, 0.0) is image
    soft = classifiers._soften(image, 1.0)
    assert soft.std() < image.std() / 2
    patch = image[0, 0, 2:7, 2:7]
    means = torch.stack([patch[i : i + 3, j : j + 3].mean() for i in range(3) for j in range(3)])
    assert torch.isclose(soft[0, 0, 4, 4], means.mean())
