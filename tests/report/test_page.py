"""The page about a run: what is measured for it, what it shows, and that it lives in a browser."""

from __future__ import annotations

import hashlib
import io as files
import re
import shutil
from base64 import b64decode, b64encode
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import chromium
import numpy as np
import pytest
import torch
from PIL import Image
from shell import done, refused

from vedute import io, methods
from vedute.commands import _pages
from vedute.figures.png import picture
from vedute.report import measure
from vedute.report.examples import examples
from vedute.report.page import POLICY, write_page
from vedute.report.run_folder import FittedRun
from vedute.report.svg import Scale, number, percent

HOSTILE = '<b>"questions" & co'
SMALL = ["--set", "steps=60", "--set", "warmup=20", "--set", "hidden=(16,)", "--set", "device=cpu"]
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
    found = measure.evidence(model, views)
    np.testing.assert_array_equal(model.transform(views), before)
    assert torch.equal(torch.random.get_rng_state(), state)
    kept = FittedRun.of(place / "run").found
    assert kept.keys() == found.keys()
    np.testing.assert_allclose(kept["margin"], found["margin"], atol=1e-4)
    assert found["held_out"]
    assert (found["stays"] <= found["tries"]).all()
    assert (found["tries"] == views.mask.sum(1).numpy() * (views.mask.sum(1) > 1).numpy()).all()


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
    assert run.found["knn_fill"][at] == pytest.approx((deviation**2).mean(), rel=1e-4)
    assert list(run.errors()) == ["MVP", "low-rank fill", "kNN fill", "mean fill"]


def test_intervals_are_checked_on_views_that_did_not_set_their_width(place):
    """A hidden view that is nonsense must not widen its own interval."""
    model, views = methods.load(place / "run"), io.enter(io.read(place / "d.npz")).views
    rows, which = model.hidden_["row"], model.hidden_["view"]
    hidden = torch.zeros_like(views.mask)
    hidden[rows, which] = True
    at = int(np.flatnonzero(which == 0)[0])
    _, calm = measure._predicted(model, views, hidden, rows, which)
    views.x[0][rows[at]] += 1e3
    _, wild = measure._predicted(model, views, hidden, rows, which)
    np.testing.assert_allclose(wild[0][at], calm[0][at], rtol=0.2)  # draws differ a little
    others = np.setdiff1d(np.flatnonzero(which == 0), at)
    assert np.median(wild[0][others] / calm[0][others]) > 2


def test_a_fill_that_learned_again_is_not_asked_for_what_it_knows(place, tmp_path):
    done("fit", place / "d.npz", "-o", tmp_path / "run", "--method", "knn_fill")
    run = FittedRun.of(tmp_path / "run")
    assert "knn_fill" not in run.found
    assert list(run.errors()) == ["kNN fill", "low-rank fill", "mean fill"]
    deviation = run.found["truth0"] - run.found["mean0"]
    assert np.abs(deviation).max() > 0.1  # a donor of itself would be exact
    write_page(tmp_path / "run", tmp_path / "page.html")
    found = sections((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "clusters" not in found
    assert {"data", "hidden", "intervals", "map", "examples", "repeat"} <= set(found)


def test_the_page_says_when_hidden_views_were_trained_on(place, tmp_path):
    words = ["--set", "early_stopping=False", *SMALL]
    done("fit", place / "d.npz", "-o", tmp_path / "run", *words, "--report", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "This training had seen them" in page
    assert "kNN fill" not in page


# What is shown.


def test_the_page_has_all_sections_and_loads_nothing(text):
    wanted = "data training hidden intervals map clusters examples repeat"
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


def test_runs_that_tell_less_give_shorter_pages(place, tmp_path):
    run = shutil.copytree(place / "run", tmp_path / "run")
    (run / "report.npz").unlink()
    write_page(run, tmp_path / "p.html")
    found = sections((tmp_path / "p.html").read_text(encoding="utf-8"))
    assert found == ["data", "training", "hidden", "clusters", "repeat"]
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
    found |= {f"stable_{k}": a for k, a in curve.items()}
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
    count = len(FittedRun.of(place / "run").found["at0"])
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


def test_ticks_are_round_and_inside():
    assert [w for _, w in Scale(0, 1, 0, 9, percent=True).ticks(5)][::5] == [
        "0\u202f%",
        "100\u202f%",
    ]
    assert [v for v, _ in Scale(3, 40, 0, 9, log=True).ticks()] == pytest.approx([5, 10, 20])
    for low, high in [(-1.7, 1.9), (0.013, 0.0142), (5, 5e6), (0, 1e-9)]:
        values = [v for v, _ in Scale(low, high, 0, 9).ticks(5)]
        assert 2 <= len(values) <= 7
        assert low <= min(values) <= max(values) <= high
    assert (number(12345.6), number(-0.5), percent(-0.0001)) == ("12\u202f346", "−0.5", "0\u202f%")


def test_what_is_wrong_is_said_in_one_sentence(place, tmp_path):
    out = tmp_path / "p.html"
    assert "ends in .html" in refused("report", place / "run", "-o", tmp_path / "p.pdf")
    assert "no config.toml" in refused("report", tmp_path, "-o", out)
    assert "neither a folder" in refused("report", place / "d.npz", "-o", out)
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
        {}, {"names": ["a"], "shapes": [[4]]}, [], np.ones((1, 1), bool), None, None, {}, {}
    )
    assert examples(run, {"a": (2, 2)}) == ""


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
    """Where an element is, once in sight."""
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
    assert page.value("document.querySelectorAll('svg.plot').length") > 10
    assert page.value("document.documentElement.scrollWidth <= innerWidth")


@browser
def test_pointing_at_a_sample_tells_its_name(page):
    page.mouse("mouseMoved", 2, 2)
    assert page.value("document.querySelector('#tip').hidden")
    page.mouse("mouseMoved", *center(page, "#map .marks .dot"))
    tip = page.value("document.querySelector('#tip').innerText")
    assert re.match(r"patient <\d+>\s*cluster \d\nlabel ", tip)
    x, y = center(page, "#data .bar.part")
    page.mouse("mouseMoved", x, y)
    assert "samples" in page.value("document.querySelector('#tip b').innerText")
    page.mouse("mouseMoved", *center(page, "#training .spot.s1"))
    assert "step" in page.value("document.querySelector('#tip').innerText")


@browser
def test_a_legend_shows_and_hides(page):
    before = visible(page, "#training .line.s0")
    assert before == 2  # one in either chart
    button = "#training .legend button[data-series=s0]"
    page.click(*center(page, button))
    assert visible(page, "#training .line.s0") == before - 1
    assert page.value(f"document.querySelector('{button}').getAttribute('aria-pressed')") == "false"
    page.click(*center(page, button))
    assert visible(page, "#training .line.s0") == before


@browser
def test_zooming_moves_the_marks_and_redraws_the_ticks(page):
    ticks = "document.querySelector('#training .grid').textContent"
    moved = "document.querySelector('#training .marks').getAttribute('transform')"
    paper = page.value(ticks)
    page.click(*center(page, "#training .tools button"))
    assert page.value(moved).startswith("matrix(1.5")
    assert page.value(ticks) != paper
    page.click(*center(page, "#training .tools button:last-child"))
    assert not page.value(moved)
    assert page.value(ticks) == paper  # the script draws what was printed
    x, y = center(page, "#map svg.plot")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200, modifiers=2)
    shift = "document.querySelector('#map .marks').getAttribute('transform')"
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
        page.size(390, 800)
        page.open(place / "page.html")
        assert page.value("document.documentElement.scrollWidth") <= 390
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
