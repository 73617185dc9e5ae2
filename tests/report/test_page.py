"""The page about a run: what is measured for it, what it shows, and that it lives in a browser."""

from __future__ import annotations

import hashlib
import io as files
import re
import shutil
from base64 import b64decode, b64encode
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import chromium
import numpy as np
import pandas as pd
import pytest
import torch
from every_method import each, small
from PIL import Image
from safetensors.numpy import load_file
from shell import done, refused, short_mvp
from sklearn.datasets import load_breast_cancer

import vedute
from vedute import io, methods
from vedute.analysis.missingness import missingness
from vedute.commands import _pages
from vedute.data.views import Views
from vedute.figures import plots
from vedute.figures.png import picture
from vedute.report import html, measure, run_folder
from vedute.report.data import stages
from vedute.report.hidden import examples
from vedute.report.html import drawing, number, percent
from vedute.report.measure import Cell, Results
from vedute.report.page import POLICY, write_page
from vedute.report.run_folder import FittedRun

HOSTILE = '<b>"questions" & co'
SMALL = short_mvp(steps=60, warmup=20)
pytestmark = pytest.mark.slow  # most of these fit and measure a model
browser = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="there is no Chromium: the page was not opened in a browser"
)


def make(path, n=120):
    """Three views of three groups: profiles, measurements in all units with a hole, yes and no."""
    rng = np.random.default_rng(3)
    group = rng.integers(3, size=n)
    z = 2.2 * rng.normal(size=(3, 2))[group] + 0.5 * rng.normal(size=(n, 2))
    a, b, c = (z @ rng.normal(size=(2, d)) + 0.4 * rng.normal(size=(n, d)) for d in (24, 7, 5))
    b = b * np.array([1, 10, 0.01, 3, 100, 2, 5]) + 100
    mask = rng.random((n, 3)) > 0.25
    mask[~mask.any(1), 0] = True
    b[np.flatnonzero(mask[:, 1])[0], 2] = np.nan
    views = {"profile": a, "blood": b, HOSTILE: (c > 0).astype(float)}
    ids = np.array([f"patient <{i}>" for i in range(n)])
    np.savez(path, **views, mask=mask, ids=ids, y=np.array(["well", "so so", "ill"])[group])
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with d.npz, a run and its page."""
    folder = tmp_path_factory.mktemp("secret-place")
    make(folder / "d.npz")
    words = ["--clusters", "3", *SMALL, "--report", folder / "page.html"]
    assert "page.html" in done("fit", folder / "d.npz", "-o", folder / "run", *words)
    return folder


@pytest.fixture(scope="module")
def text(place):
    return (place / "page.html").read_text(encoding="utf-8")


def sections(page):
    return re.findall(r'<section id="(\w+)"', page)


# What is measured.


def test_evidence_measures_and_changes_nothing(place):
    model, views = methods.load(place / "run"), io.enter(io.read(place / "d.npz")).views
    before, state = model.transform(views), torch.random.get_rng_state()
    measured = measure.evidence(model, views)
    np.testing.assert_array_equal(model.transform(views), before)
    assert torch.equal(torch.random.get_rng_state(), state)
    kept = FittedRun.of(place / "run").results
    assert kept.arrays().keys() == measured.arrays().keys()
    np.testing.assert_allclose(kept.margin, measured.margin, atol=1e-4)
    assert measured.held_out
    assert measured.refitted  # 120 samples are few
    assert (measured.stays <= measured.tries).all()
    assert (measured.tries == views.mask.sum(1).numpy() * (views.mask.sum(1) > 1).numpy()).all()


def test_fills_get_the_same_task_and_the_same_measure(place):
    run = FittedRun.of(place / "run")
    views = io.enter(io.read(place / "d.npz")).views
    hidden = torch.zeros_like(views.mask)
    rows, which = run.hidden["row"], run.hidden["view"]
    hidden[rows, which] = True
    knn = methods.find("knn_fill")(random_state=0).fit(views.hide(hidden))
    filled = knn.impute(views.hide(hidden))
    at = np.flatnonzero(which == 0)[0]
    scale = methods.load(place / "run").views_[0].scaler
    deviation = (filled.x[0][rows[at]] - views.x[0][rows[at]]).numpy() / (scale.std * scale.scale)
    assert run.results.fill_errors["knn_fill"][at] == pytest.approx((deviation**2).mean(), rel=1e-4)
    assert list(run.errors()) == ["MVP", "low-rank fill", "kNN fill", "mean fill"]


def test_fit_says_where_a_simple_fill_is_as_good(place, tmp_path):
    words = [w if w != "steps=60" else "steps=1" for w in SMALL]  # learns next to nothing
    said = done("fit", place / "d.npz", "-o", tmp_path / "run", *words)
    run = FittedRun.of(tmp_path / "run")
    error = {key: e.mean() for key, e in run.results.fill_errors.items()}
    best = min(error, key=error.get)
    assert error[best] < run.results.error.mean()
    name = {"lowrank_fill": "low-rank fill", "knn_fill": "kNN fill"}[best]
    line = rf"{name} is as good on these data and takes [\d.]+ s: --method {best}"
    assert len(re.findall(rf"^{line}$", said, re.M)) == 1
    assert re.fullmatch(line, run.advice())


def test_advice_only_where_it_is_true(place):
    run = FittedRun.of(place / "run")

    def advice(low, knn=9.0, own=1.0, seconds=2.4, n=120, **more):
        results = Results(
            error=np.array([own, own]),
            fill_errors={"lowrank_fill": np.array([low, low]), "knn_fill": np.array([knn, knn])},
            fill_seconds={"lowrank_fill": np.array(seconds), "knn_fill": np.array(0.01)},
            fill_rows=n,
        )
        return replace(run, results=results, **more).advice()

    line = "low-rank fill is as good on these data and takes 2 s: --method lowrank_fill"
    assert advice(1.02) == line
    assert advice(1.021) is None
    assert advice(1.01, knn=1.0).startswith("kNN fill is as good on these data and takes 0.1 s")
    assert "takes 300 s for 50 samples:" in advice(0.5, seconds=300.0, n=50)
    assert advice(0.5, history=[]) is None  # nothing was trained: it is a simple fill itself
    assert replace(run, results=Results()).advice() is None


def test_a_fill_that_learned_again_is_not_asked_for_what_it_knows(place, tmp_path):
    done("fit", place / "d.npz", "-o", tmp_path / "run", "--method", "knn_fill")
    run = FittedRun.of(tmp_path / "run")
    assert "knn_fill" not in run.results.fill_errors
    assert list(run.errors()) == ["kNN fill", "low-rank fill", "mean fill"]
    deviation = run.results.truth[0] - run.results.mean[0]
    assert np.abs(deviation).max() > 0.1  # a donor of itself would be exact
    write_page(tmp_path / "run", tmp_path / "page.html")
    found = sections((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "clusters" not in found
    assert {"data", "hidden", "map", "examples", "repeat"} <= set(found)


def test_the_page_says_when_hidden_views_were_trained_on(place, tmp_path):
    words = ["--set", "early_stopping=False", *SMALL]
    more = ["-o", tmp_path / "run", "--report", tmp_path / "p.html"]
    assert "which training had seen, explained" in done("fit", place / "d.npz", *words, *more)
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "No view was hidden from this training" in page
    assert "kNN fill" not in page
    assert "hidden views explained" not in page
    assert not {"intervals", "examples"} & set(sections(page))


def cancer():
    """Three views of ten measurements: (569, 10) each, some views missing."""
    X = load_breast_cancer().data[:300]
    mask = np.random.default_rng(0).random((len(X), 3)) > 0.2
    mask[~mask.any(1), 0] = True
    return [np.where(mask[:, [v]], X[:, 10 * v : 10 * v + 10], np.nan) for v in range(3)]


@pytest.fixture(scope="module")
def few():
    """An MVP fitted on few samples, and the model before its refit."""
    sizes = dict(steps=120, latent_dim=6, hidden=(32,), batch_size=64, lr=2e-3, weight_decay=0.0)
    sizes |= dict(
        again=None, scaling="standard"
    )  # so that errors and intervals are easy to compute by hand
    model, first = (small(methods.find("mvp"), **sizes) for _ in range(2))
    learn = first.learn
    first.learn = lambda data, held, fit: learn(data, held, fit) if held is not None else None
    return model.fit(cancer()), first.fit(cancer())


def errors_of(model, X, at):
    """Squared errors in standard deviations at hidden views `at`, measured by hand."""
    rows, which = (model.hidden_[k][at] for k in ("row", "view"))
    out = [x.copy() for x in X]
    for r, v in zip(rows, which, strict=True):
        out[v][r] = np.nan
    filled = model.impute(out)
    found = []
    for r, v in zip(rows, which, strict=True):
        deviation = (filled[v][r] - X[v][r]) / np.nanstd(X[v], axis=0)
        found.append((deviation**2).mean())
    return np.array(found)


def test_a_page_of_few_samples_shows_errors_from_before_they_were_learned(few):
    """Errors are those of the model fitted without the hidden views, not of the saved one."""
    X, (model, first) = cancer(), few
    assert model.learned_again_
    results = measure.evidence(model, Views.of(X))
    honest, own = (errors_of(m, X, results.picked) for m in (first, model))
    which = model.hidden_["view"][results.picked]
    for v in range(3):  # cross-fitting moves the shrinkage by a few instances, no more
        mine = results.error[which == v].mean()
        assert mine == pytest.approx(honest[which == v].mean(), rel=0.05)
        deviation = (results.truth[v] - results.mean[v]) / np.nanstd(X[v], axis=0)
        error = dict(zip(model.hidden_["row"][which == v], results.error[which == v], strict=True))
        shown = [error[row] for row in results.at[v]]
        np.testing.assert_allclose((deviation**2).mean(1), shown, rtol=1e-3)
    off, other = (np.abs(e - honest).mean() for e in (results.error, own))
    assert off < 0.2 * other  # its errors are of the first learning, one by one


def test_coverage_is_that_of_intervals_kept_with_the_model(few, tmp_path):
    """Counted by hand, and the same after the model was saved and loaded."""
    X, (model, _) = cancer(), few
    model.save(tmp_path / "model")
    known = methods.load(tmp_path / "model").hidden_predictions_
    rows, which = (model.hidden_[k][known["at"]] for k in ("row", "view"))
    for v in range(3):
        far = np.abs(X[v][rows[which == v]] - known[f"mean{v}"]) / known[f"std{v}"]
        inside = far <= known[f"reach{v}"][:, 17, None]
        assert known["covered"][v, 17] == pytest.approx(inside.mean(), abs=1e-3)
    np.testing.assert_array_equal(known["covered"], model.hidden_predictions_["covered"])


# What is shown.


def test_means_stand_beside_medians_and_the_distribution(place, text):
    run = FittedRun.of(place / "run")
    error = run.errors()["MVP"]
    assert f"{error.mean():.3f}</b><small>{np.median(error):.3f}</small>" in text or (
        f"{error.mean():.3f}<small>{np.median(error):.3f}</small>" in text
    )
    few = int(re.search(r"(\d+) of \d+ hidden views make half of the whole error", text).group(1))
    ranked = np.sort(error)[::-1]
    assert ranked[: few - 1].sum() < error.sum() / 2 <= ranked[:few].sum()


def test_the_second_learning_is_marked_and_explained(place, text):
    run = FittedRun.of(place / "run")
    first = [r for r in run.history if r["hidden_error"] is not None]
    assert run.second() == first[-1]["step"] < run.history[-1]["step"]
    assert f"after step {run.second()} the model was refit" in text
    assert text.count(">refit, with all views<") == 2
    assert "was then refit with them" in text


def test_a_stage_that_was_tried_is_no_second_learning(place):
    stage = {"terms": {}, "epoch": 1, "hidden_error": 0.5}
    history = [
        {**stage, "step": 1, "stage": 0, "watched": True},
        {**stage, "step": 2, "stage": 1, "watched": False, "better": False},
    ]
    run = replace(FittedRun.of(place / "run"), history=history)
    assert run.second() == 0
    assert "tried; hidden views decide whether to keep it" in stages(run)


def test_the_page_has_all_sections_and_loads_nothing(text):
    wanted = "hidden examples views clusters map samples data training repeat"
    assert sections(text) == wanted.split()
    assert len(text) < 1e6
    outside = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?([^"\'\s)>]+)', text)
    assert all(link.startswith(("#", "data:")) for link in outside)
    script = re.search(r"<script>(.*)</script>", text, re.DOTALL).group(1)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"{POLICY}; script-src 'sha256-{digest}'" in text
    assert POLICY.startswith("default-src 'none'")


def test_words_of_the_user_stay_words(text):
    assert "<b>&quot;questions" not in text
    assert '<b>"questions' not in text
    assert "patient <" not in text
    assert "&lt;b&gt;&quot;questions&quot; &amp; co" in text

    class Balance(HTMLParser):
        stack: list[str] = []  # noqa: RUF012

        def handle_starttag(self, tag, attrs):
            if tag not in ("meta", "link", "input", "img"):
                self.stack.append(tag)

        def handle_startendtag(self, tag, attrs):
            pass

        def handle_endtag(self, tag):
            assert self.stack.pop() == tag

    parser = Balance()
    parser.feed(text)
    assert not parser.stack


def test_the_same_run_gives_the_same_page(place, text, tmp_path):
    write_page(place / "run", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text


def test_no_ids_leaves_out_names_folders_and_the_order_of_rows(place, text, tmp_path):
    assert "patient" in text
    assert str(place) in text
    done("report", place / "run", "-o", tmp_path / "p.html", "--no-ids")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert sections(page) == sections(text)
    assert "patient" not in page
    assert "secret-place" not in page
    dots = [re.findall(r'class="dot c\d[^"]*" d="(M[^h]+)h', p) for p in (text, page)]
    assert sorted(dots[0]) == sorted(dots[1])
    assert dots[0] != dots[1]


IDS = [f"Zyxelia-{i:03d}" for i in range(90)]


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """A run of people with --no-ids and --no-values, and its page."""
    folder = tmp_path_factory.mktemp("Quimbleton-clinic")
    rng = np.random.default_rng(0)
    z = rng.normal(size=(90, 2))
    a, b = (z @ rng.normal(size=(2, d)) + 0.1 * rng.normal(size=(90, d)) for d in (5, 4))
    a[:, 1] = 7654 + rng.integers(1, 9, size=90) + 0.321
    y = np.array(["grumpiness", "health"])[(z[:, 0] > 0).astype(int)]
    data = folder / "Wobbleworth.npz"
    np.savez(data, a=a, b=b, ids=np.array(IDS), y=y)
    words = ["--clusters", "2", *SMALL, "--set", f"checkpoint={folder / 'ck'}"]
    done("fit", data, "-o", folder / "run", "--report", folder / "open.html", *words)
    hidden = ["--no-ids", "--no-values", "--report", folder / "page.html"]
    done("fit", data, "-o", folder / "private", *hidden, *words)
    return folder


def everything(path):
    """All text and arrays of a file or folder, and every number in arrays."""
    texts, numbers = [], [np.zeros(0)]
    for file in [path] if path.is_file() else sorted(path.iterdir()):
        arrays = {}
        if file.suffix == ".npz":
            arrays = dict(np.load(file))
        elif file.suffix == ".safetensors":
            arrays = load_file(file)
        else:
            texts.append(file.read_text(encoding="utf-8"))
        columns = [a[k] for a in arrays.values() for k in a.dtype.names or [...]]
        texts += [" ".join(a.ravel()) for a in columns if a.dtype.kind == "U"]
        numbers += [a.ravel().astype(float) for a in columns if a.dtype.kind in "fiu"]
    return "\n".join(texts), np.concatenate(numbers)


def planted(numbers):
    """How many are one of the values that were planted in single samples."""
    near = np.abs(numbers[:, None] - (7654.321 + np.arange(1, 9))).min(1) if len(numbers) else []
    return int((np.asarray(near) < 1e-3).sum())


def test_ids_and_values_are_in_a_run_and_its_page(private):
    words, numbers = everything(private / "run")
    page = (private / "open.html").read_text(encoding="utf-8")
    for word in ("Zyxelia", "Quimbleton", "Wobbleworth", "grumpiness"):
        assert word in words
        assert word in page
    assert planted(numbers)


def test_no_ids_and_no_values_leave_nothing_of_people_in_run_and_page(private):
    words, numbers = everything(private / "private")
    page = (private / "page.html").read_text(encoding="utf-8")
    for word in ("Zyxelia", "Quimbleton", "Wobbleworth", "grumpiness"):
        assert word not in words
        assert word not in page
    assert not planted(numbers)
    assert not re.search(
        r"(?<![\d.])76[56]\d", re.sub(r'(d|href)="[^"]*"|url\(.*?\)', "", page)
    )  # 7655 to 7662
    assert "examples" not in sections(page)
    assert {"hidden", "map", "clusters"} <= set(sections(page))
    assert "ids, values" in page  # it says what it lacks
    model = methods.load(private / "private")
    assert model.embedding_.shape[0] == 0
    kept = {"at", "error", "levels", "covered", "crps", "in_units", "alone", "without"}
    kept |= {f"{k}{v}" for k in ("known", "explained", "off") for v in range(2)}
    assert kept == set(model.hidden_predictions_)
    told = refused("embed", private / "private", "-o", private / "z.npz")
    assert "does not say what it was fitted on; name DATA" in told
    done("embed", private / "private", private / "Wobbleworth.npz", "-o", private / "z.npz")


def test_no_values_leave_every_personal_field_empty(private):
    """What is about people follows from the fields: each is in a run unless it keeps no values."""
    of_values = {"truth", "mean", "std", "reach", "y", "cells", "shades", "shade_names"}
    assert set(measure.personal()) == of_values
    for name, kept in (("run", True), ("private", False)):
        with np.load(private / name / "report.npz") as arrays:
            stored = {key.partition(".")[0] for key in arrays.files}
        results = FittedRun.of(private / name).results
        for field in set(measure.personal()):
            assert (field in stored) == kept, field
            assert (len(getattr(results, field)) > 0) == kept, field


def test_a_page_leaves_out_values_that_its_run_has(private, tmp_path):
    done("report", private / "run", "-o", tmp_path / "p.html", "--no-values", "--no-ids")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    for word in ("Zyxelia", "Quimbleton", "Wobbleworth", "grumpiness"):
        assert word not in page
    assert "examples" not in sections(page)
    done("report", private / "run", "-o", tmp_path / "q.html", "--no-values")
    page = (tmp_path / "q.html").read_text(encoding="utf-8")
    assert "Zyxelia" in page
    assert "grumpiness" not in page


@pytest.mark.parametrize("name", methods.of_this_package())
def test_methods_that_keep_samples_are_refused_where_values_are_left_out(name):
    """No array of another model has a row per sample once it is to forget them."""
    X = list(np.random.default_rng(0).normal(size=(2, 61, 5)))
    cls = methods.find(name)
    model = small(cls, **({"n_clusters": 3} if cls.soft else {})).fit(X)
    learned = dict(flat(model.saved().learned))
    run_folder._forget(model)
    kept = dict(flat(model.saved().learned))
    rows = [k for k, a in kept.items() if np.ndim(a) > 1 and 61 in np.shape(a)]
    rows = [k for k in rows if np.array_equal(kept[k], learned[k])]
    inside = [name, *model.get_params(deep=False).get("experts", ())]
    assert bool(rows) == any(methods.find(k).keeps_samples for k in inside), rows
    if model.generates:
        assert len(model.generate(3)["view0"]) == 3


def flat(learned, before=""):
    """Name and array of all that was learned, however deep."""
    for k, a in learned.items() if isinstance(learned, dict) else enumerate(learned):
        if isinstance(a, (dict, list)):
            yield from flat(a, f"{before}{k}.")
        else:
            yield f"{before}{k}", a


def test_an_r2_that_is_not_known_says_why(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(60, 3))
    np.savez(tmp_path / "d.npz", a=a, b=a @ rng.normal(size=(3, 2)), c=np.ones((60, 2)))
    printed = done("fit", tmp_path / "d.npz", "-o", tmp_path / "r", "--method", "lowrank_fill")
    assert "c not known (nothing varies in it)" in printed
    assert "nan" not in printed
    mask = np.ones((60, 3), bool)
    mask[:, 2] = np.arange(60) < 1
    mask[0, :2] = False  # c is never there with another view
    np.savez(tmp_path / "e.npz", a=a, b=2 * a, c=a, mask=mask)
    printed = done("fit", tmp_path / "e.npz", "-o", tmp_path / "s", "--method", "lowrank_fill")
    assert "c not known (none of it was hidden)" in printed


def test_runs_that_tell_less_give_shorter_pages(place, tmp_path):
    run = shutil.copytree(place / "run", tmp_path / "run")
    (run / "report.npz").unlink()
    write_page(run, tmp_path / "p.html")
    found = sections((tmp_path / "p.html").read_text(encoding="utf-8"))
    assert found == ["hidden", "clusters", "data", "training", "repeat"]
    for name in ("hidden.npz", "history.jsonl"):
        (run / name).unlink()
    with np.load(run / "embedding.npz") as arrays:
        kept = {k: arrays[k] for k in ("embedding", "mask")}
    np.savez(run / "embedding.npz", **kept)
    write_page(run, tmp_path / "p.html")
    assert sections((tmp_path / "p.html").read_text(encoding="utf-8")) == ["data", "repeat"]


def test_the_curve_that_chose_the_number_of_clusters_is_shown(place, tmp_path):
    run = shutil.copytree(place / "run", tmp_path / "run")
    curve = {"n_clusters": np.arange(2, 6), "stability": np.array([0.9, 0.95, 0.7, 0.6])}
    curve |= {"error": np.full(4, 0.01), "chance": np.array([0.5, 0.4, 0.3, 0.2])}
    with np.load(run / "report.npz") as arrays:
        found = dict(arrays)
    found |= {f"stability.{k}": a for k, a in curve.items()}
    found["y"] = np.linspace(0, 1, 120)  # and labels may be numbers without end
    np.savez(run / "report.npz", **found)
    write_page(run, tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "How many clusters" in page
    assert "0 to 0.2" in page


def test_views_with_a_shape_are_pictures(place, tmp_path):
    words = ["--shape", "profile=4x6"]
    done("report", place / "run", "-o", tmp_path / "p.html", *words)
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    sources = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    count = len(FittedRun.of(place / "run").results.at[0])
    assert len(sources) == 3 * count
    assert Image.open(files.BytesIO(b64decode(sources[0]))).size == (6, 4)


def test_a_picture_holds_what_it_was_given():
    rng = np.random.default_rng(0)
    for shape in [(5, 7), (3, 5, 7), (5, 7, 3)]:
        image = rng.integers(256, size=shape).astype(float)
        data = picture(image, 0, 255).removeprefix("data:image/png;base64,")
        read = np.asarray(Image.open(files.BytesIO(b64decode(data))))
        np.testing.assert_array_equal(read, image.transpose(1, 2, 0) if shape[0] == 3 else image)
    assert picture(np.zeros((500, 300)), 0, 0)


def test_numbers_are_short_and_readable():
    assert (number(12345.6), number(-0.5), percent(-0.0001)) == ("12\u202f346", "−0.5", "0\u202f%")


def test_names_in_drawings_are_no_mathematics():
    names = ["$\\frac{1}$", "a $ b", "<i>"]
    shares = {name: np.linspace(0, 1, 20) for name in names}
    text = drawing(lambda ax: plots.ridges(ax, shares), "t", 5.0, 2.0)
    assert all(escape(name) in text for name in names)
    assert text == drawing(lambda ax: plots.ridges(ax, shares), "t", 5.0, 2.0)


def test_a_page_without_matplotlib_says_what_it_lacks(place, tmp_path, monkeypatch):
    monkeypatch.setattr(html, "find_spec", lambda _: None)
    write_page(place / "run", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "This figure needs matplotlib: pip install" in page
    assert '<svg class="plot"' in page


def test_what_is_wrong_is_said_in_one_sentence(place, tmp_path):
    out = tmp_path / "p.html"
    assert "ends in .html" in refused("report", place / "run", "-o", tmp_path / "p.pdf")
    assert "no config.toml" in refused("report", tmp_path, "-o", out)
    assert "is not a folder that" in refused("report", place / "d.npz", "-o", out)
    assert "VIEW" not in refused("report", place / "run", "-o", out, "--shape", "profile=24")
    wrong = ["--shape", "profile=5x5"]
    assert "24 numbers per sample, not 5x5" in refused("report", place / "run", "-o", out, *wrong)
    assert "no view 'x'" in refused("report", place / "run", "-o", out, "--shape", "x=5x5")
    again = ["--report", place / "page.html"]
    assert "exists" in refused("fit", place / "d.npz", "-o", tmp_path / "run", *again)
    assert not list(tmp_path.iterdir())


def test_a_model_is_never_lost_to_a_chart(place, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "evidence", lambda *_: 1 / 0)
    output = done("fit", place / "d.npz", "-o", tmp_path / "run", "--method", "mean_fill")
    assert "will lack its measurements" in output
    assert not (tmp_path / "run" / "report.npz").exists()
    assert methods.load(tmp_path / "run")


def test_shapes_are_parsed():
    assert _pages.parse(["a=b=3x16X15"]) == {"a=b": (3, 16, 15)}
    run = FittedRun(
        {},
        {"names": ["a"], "shapes": [[4]]},
        [],
        np.ones((1, 1), bool),
        None,
        None,
        {},
        Results(),
    )
    assert examples(run, {"a": (2, 2)}) == ""


def test_features_are_measured_where_they_were_hidden(few):
    """Errors by feature, by hand, from what was predicted before it was learned from."""
    X, (model, _) = cancer(), few
    known = model.hidden_predictions_
    rows, which = (model.hidden_[k][known["at"]] for k in ("row", "view"))
    for v in range(3):
        truth, mean = X[v][rows[which == v]], known[f"mean{v}"]
        base = ((truth - np.nanmean(X[v], axis=0)) ** 2).sum(0)
        share = 1 - ((truth - mean) ** 2).sum(0) / base
        np.testing.assert_allclose(known[f"explained{v}"], share, atol=2e-3)
        np.testing.assert_allclose(known[f"off{v}"], np.median(abs(truth - mean), 0), rtol=1e-3)
        assert (known[f"known{v}"] == len(truth)).all()


def test_what_one_view_tells_of_another_is_measured_before_it_is_learned(few):
    """Manual computation with the model that was fitted without the hidden views."""
    X, (model, first) = cancer(), few
    rows, which = (model.hidden_[k] for k in ("row", "view"))
    some = (which == 1) & ~np.isnan(X[0][rows]).all(1)
    alone = [np.full_like(x, np.nan) for x in X]
    alone[0][rows[some]] = X[0][rows[some]]
    got = first.impute([x[rows[some]] for x in alone])[1]
    off = (((got - X[1][rows[some]]) / np.nanstd(X[1], axis=0)) ** 2).mean(1).sum()
    error, base, count = model.hidden_predictions_["alone"][:, 0, 1]
    assert count == some.sum()
    assert error == pytest.approx(off, rel=0.02)
    assert base == pytest.approx(model.hidden_["mean_error"][some].sum(), rel=1e-3)
    less, more, few_ = model.hidden_predictions_["without"][:, 0, 1]
    assert few_ <= count
    assert less > 0 < more


def test_samples_are_shown_with_what_the_model_imputes(place):
    run, model = FittedRun.of(place / "run"), methods.load(place / "run")
    views, measured = io.enter(io.read(place / "d.npz")).views, run.results
    mean, low, high = model.impute(views, interval=0.9)
    seen = [views.seen(v).numpy() for v in range(3)]
    names = [list(measure.features(spec)) for spec in model.specs]
    for t in np.linspace(0, len(measured.cells) - 1, 40).astype(int):
        cell = Cell(*measured.cells[t])
        row, v = measured.listed[cell.of], cell.view
        f = names[v].index(cell.name)
        assert cell.seen == seen[v][row, f]
        width = float(high.x[v][row, f] - low.x[v][row, f])  # of other draws, but about the same
        for key, own in zip(("value", "low", "high"), (mean, low, high), strict=True):
            close = pytest.approx(float(own.x[v][row, f]), rel=1e-4, abs=0.15 * width + 1e-5)
            assert getattr(cell, key) == close
    doubt = measured.doubt
    assert np.isnan(doubt[run.mask.all(1) & views.seen(1).all(1).numpy()]).all()
    assert (np.diff(doubt[measured.listed][~np.isnan(doubt[measured.listed])]) <= 0).all()
    assert np.bincount(measured.cells["of"]).max() <= 30


def test_python_writes_the_same_page(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(90, 2))
    ids = [f"p{i}" for i in range(90)]
    sex = np.where(z[:, 1] > 0, "f", "m")
    grade = np.array(["low", "mid", "high"])[np.digitize(z[:, 0], [-0.5, 0.5])]
    a = pd.DataFrame(z @ rng.normal(size=(2, 4)), index=ids, columns=["iron", "zinc", "b6", "b12"])
    b = pd.DataFrame({"grade": pd.Categorical(grade), "sex": pd.Categorical(sex)}, ids)
    X = {"blood": a[:80], "clinic": b[10:].assign(weight=70 + 9 * z[10:, 0])}
    model = methods.find("ridge_fill")(n_clusters=2, random_state=0).fit(X)
    vedute.write_report(model, X, tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "samples" in sections(page)
    assert "<td>grade</td>" in page  # a category by its word, with its probability
    assert re.search(r"<b>(low|mid|high)( \(\d+ %\))?</b>", page)
    assert "RidgeFill(n_clusters=2, random_state=0)" in page
    vedute.write_report(model, X, tmp_path / "q.html", ids=False, values=False)
    private = (tmp_path / "q.html").read_text(encoding="utf-8")
    assert not re.search(r"\bp\d\d?\b", private)
    assert "<td>grade</td>" not in private
    with pytest.raises(ValueError, match="fitted on 90; pass the X of fit"):
        vedute.write_report(model, {k: x[:60] for k, x in X.items()}, tmp_path / "r.html")
    with pytest.raises(ValueError, match=r"ends in \.html"):
        vedute.write_report(model, X, tmp_path / "r.pdf")


@pytest.mark.parametrize("name", each(methods.of_this_package()))
def test_every_method_has_a_page(name, tmp_path):
    X = list(np.random.default_rng(0).normal(size=(2, 61, 5)))
    X[0][:9] = np.nan
    cls = methods.find(name)
    model = small(cls, **({"n_clusters": 3} if cls.soft else {})).fit(X)
    vedute.write_report(model, X, tmp_path / "p.html")
    found = sections((tmp_path / "p.html").read_text(encoding="utf-8"))
    assert {"data", "map", "repeat"} <= set(found)
    assert cls.generative == ("samples" in found and "hidden" in found) or not cls.generative


@pytest.mark.slow
def test_a_page_of_images_and_words(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, size=(60, 1, 8, 8)).astype(np.uint8)
    words = rng.integers(0, 5, size=(60, 4))
    X, mask = (
        {"image": images, "text": words, "number": rng.normal(size=(60, 2))},
        np.ones((60, 3), bool),
    )
    mask[:9, 0] = mask[9:20, 1] = mask[20:30, 2] = False
    model = small(methods.find("mvp"), kinds={"text": "tokens"}).fit(Views.of(X, mask=mask))
    vedute.write_report(model, Views.of(X, mask=mask), tmp_path / "p.html")
    assert "samples" in sections((tmp_path / "p.html").read_text(encoding="utf-8"))


def test_it_warns_where_what_is_missing_depends_on_what_is_observed():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400, 6))
    names = [[f"a{i}" for i in range(6)], [f"b{i}" for i in range(6)]]
    for depends in (False, True):
        mask = np.ones((400, 2), bool)
        mask[:, 1] = (
            rng.random(400) < 1 / (1 + np.exp(3 * a[:, 2])) if depends else rng.random(400) < 0.5
        )
        found = missingness(Views.of([a, b], mask=mask), names)
        assert (found["p"].min() < 0.01) == depends
    assert found.iloc[0][["missing", "view", "feature"]].tolist() == ["view1", "view0", "a2"]
    assert found.iloc[0]["difference"] > 0.5


# In a browser.


@pytest.fixture(scope="module")
def window(place):
    if chromium.PROGRAM is None:
        pytest.skip("there is no Chromium")
    with chromium.Chromium() as opened:
        yield opened


@pytest.fixture
def page(window, place):
    window.scripts(True)
    window.dark(False)
    window.open(place / "page.html")
    return window


def center(page, selector):
    """Center of an element after scrolling to it."""
    place = f"document.querySelector({selector!r})"
    page.value(f"{place}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    return page.value(
        f"(b => [b.x + b.width / 2, b.y + b.height / 2])({place}.getBoundingClientRect())"
    )


def visible(page, selector):
    """How many elements can be seen."""
    these = f"[...document.querySelectorAll({selector!r})]"
    return page.value(f"{these}.filter(m => m.checkVisibility()).length")


@browser
def test_it_opens_without_complaint_or_request(page, place):
    page.value("new Promise(done => setTimeout(done, 300))")
    assert page.complaints() == []
    assert page.requests() == [(place / "page.html").as_uri()]
    assert page.value("document.querySelectorAll('svg.plot').length") == 1  # the map
    assert page.value("document.querySelectorAll('svg.drawing').length") > 10
    assert page.value("document.documentElement.scrollWidth <= innerWidth")


@browser
def test_pointing_at_a_sample_tells_its_name(page):
    page.mouse("mouseMoved", 2, 2)
    assert page.value("document.querySelector('#tip').hidden")
    page.mouse("mouseMoved", *center(page, "#map .marks .dot"))
    tip = page.value("document.querySelector('#tip').innerText")
    assert re.match(r"patient <\d+>\s*cluster \d\nlabel ", tip)


def lines(page):
    """Names of the samples in sight."""
    spans = "[...document.querySelectorAll('.samples .sample summary span:first-child')]"
    return page.value(f"{spans}.map(s => s.textContent)")


def typed(page, words):
    act = f"f.value = {words!r}; f.dispatchEvent(new Event('input'))"
    page.value(f"(f => {{ {act} }})(document.querySelector('.finder input'))")


@browser
def test_samples_are_searched_sorted_and_opened(page, place):
    run = FittedRun.of(place / "run")
    assert len(lines(page)) == 6
    typed(page, "patient <7>")
    assert lines(page) == ["patient <7>"]
    assert page.value("document.querySelector('.finder span').textContent") == "1 of 120"
    typed(page, "patient <7> with a typo")
    assert lines(page) == []
    assert "No sample matches" in page.value("document.querySelector('.samples').innerText")
    typed(page, "missing blood")
    assert page.value("parseInt(document.querySelector('.finder span').textContent)") == sum(
        not run.mask[i, 1] or run.names[1] in run.gaps(i) for i in range(len(run.mask))
    )
    typed(page, "")
    shares = "[...document.querySelectorAll('.sample summary span:nth-child(2)')]"
    first = page.value(f"{shares}.map(s => parseInt(s.textContent))")
    assert first == sorted(first, reverse=True)
    for _ in range(2):  # down, then up
        page.click(*center(page, ".heads button[data-by=uncertainty]"))
    assert page.value("document.querySelector('.heads [data-sorted=up]') !== null")
    page.click(*center(page, ".heads button[data-by=sample]"))
    assert lines(page)[:3] == ["patient <0>", "patient <1>", "patient <2>"]
    page.click(*center(page, ".sample summary"))
    assert page.value("document.querySelector('.sample').open")
    assert "Cluster" in page.value("document.querySelector('.sample[open] p').innerText")
    assert visible(page, ".sample[open] tr") > 5
    near = page.value("document.querySelector('.sample[open] .near button').textContent")
    page.click(*center(page, ".sample[open] .near button"))
    assert lines(page)[0] == near
    assert page.value("document.querySelector('.sample').open")


@browser
def test_samples_open_by_keyboard_and_without_scripts(page, place):
    page.value("document.querySelector('.sample summary').focus()")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowDown", code="ArrowDown")
    at = "[...document.querySelectorAll('.sample')].indexOf(document.activeElement.parentNode)"
    assert page.value(at) == 1
    enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
    page.call("Input.dispatchKeyEvent", type="keyDown", **enter)
    page.call("Input.dispatchKeyEvent", type="keyUp", **enter)
    assert page.value("document.querySelectorAll('.sample')[1].open")
    page.scripts(False)
    page.open(place / "page.html")
    page.click(*center(page, ".sample summary"))
    assert page.value("document.querySelector('.sample').open")
    assert visible(page, ".sample[open] tr") > 5


@browser
def test_a_legend_shows_and_hides(page):
    before = visible(page, "#map .dot.c0")
    assert before > 10
    button = "#map .legend button[data-series=c0]"
    page.click(*center(page, button))
    assert visible(page, "#map .dot.c0") == 0
    assert page.value(f"document.querySelector('{button}').getAttribute('aria-pressed')") == "false"
    page.click(*center(page, button))
    assert visible(page, "#map .dot.c0") == before


@browser
def test_zooming_moves_the_marks(page):
    shift = "document.querySelector('#map .marks').getAttribute('transform')"
    page.click(*center(page, "#map .tools button"))
    assert page.value(shift).startswith("matrix(1.5")
    page.click(*center(page, "#map .tools button:last-child"))
    assert not page.value(shift)
    x, y = center(page, "#map svg.plot")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200, modifiers=2)
    before = page.value(shift)
    assert float(re.match(r"matrix\(([\d.]+)", before).group(1)) > 1.2
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseMoved", x + 30, y + 20, button="left", buttons=1)
    page.mouse("mouseReleased", x + 30, y + 20, button="left", clickCount=1)
    assert page.value(shift) != before


@browser
def test_colors_change_with_the_question_even_without_scripts(page, place):
    color = "getComputedStyle(document.querySelector('#map .marks .dot')).stroke"
    first = page.value(color)
    page.click(*center(page, "#map label[for=by3]"))
    assert page.value(color) != first
    assert visible(page, "#map .legend") == 1
    page.scripts(False)
    page.open(place / "page.html")
    page.click(*center(page, "#map label[for=by3]"))
    assert page.value(color) != first
    assert "patient" in page.value("document.querySelector('#map .dot title').textContent")


@browser
def test_it_follows_the_light_and_goes_on_paper(page, place, tmp_path):
    ground = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    assert page.value(ground) > 240
    page.dark(True)
    assert page.value(ground) < 40
    page.print(tmp_path / "p.pdf")
    data = (tmp_path / "p.pdf").read_bytes()
    assert data.startswith(b"%PDF")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", data)) <= 14


@browser
def test_it_fits_a_telephone(page, place):
    try:
        page.size(400, 800)
        page.open(place / "page.html")
        assert page.value("document.documentElement.scrollWidth") <= 400
        page.value("document.querySelector('.sample').open = true")
        wide = "[...document.querySelectorAll('main *')].filter(e => e.checkVisibility()"
        wide += " && e.getBoundingClientRect().right > 401).map(e => e.outerHTML.slice(0, 80))"
        assert page.value(wide) == []
        assert visible(page, ".slim svg") > 1
        assert visible(page, ".broad svg") == 0
    finally:
        page.size(1280, 900)


def test_continuous_integration_has_a_browser():
    script = (Path(__file__).parents[2] / ".ci" / "run").read_text()
    assert "chromium" in script


@pytest.mark.parametrize(
    ("stages", "watched", "end"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], 2),  # MVP: one stage of warm-up
        ([0, 1, 2, 3], [0, 0, 0, 1], 3),  # MVAE: one for each value of beta
        ([0, 1, 1, 1], [0, 0, 0, 0], 1),  # nothing is watched: the first stage
    ],
)
def test_the_warm_up_ends_where_stages_are_watched(stages, watched, end):
    both = enumerate(zip(stages, watched, strict=True), start=1)
    history = [{"step": i, "stage": s, "watched": bool(w)} for i, (s, w) in both]
    run = SimpleNamespace(config={"settings": {"warmup": 5}}, history=history)
    assert FittedRun.warmup(run) == end
    assert (
        FittedRun.warmup(SimpleNamespace(config={"settings": {"warmup": 0}}, history=history)) == 0
    )
