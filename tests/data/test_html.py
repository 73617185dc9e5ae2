"""What notebooks show of Views."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np

from vedute.data import html
from vedute.data.views import Views

BAD = '<script>alert("x")</script>'


class Tags(HTMLParser):
    """All tags, that they are closed, and the text of cells."""

    def __init__(self, text):
        super().__init__()
        self.open, self.all, self.text = [], set(), []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.all.add(tag)
        assert not [k for k, _ in attributes if k not in ("style", "title")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_views_show_sizes_kinds_holes_and_patterns():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(10, 3))
    a[:4] = np.nan
    a[5, :2] = np.nan
    photo = rng.integers(256, size=(10, 1, 4, 4), dtype=np.uint8)
    page = Tags(Views.of({"a": a, "photo": photo})._repr_html_())
    text = page.text
    assert text[0] == "10 samples, 2 views"
    rows = [text[6:11], text[11:16]]
    assert rows[0] == ["a", "3", "6 of 10", "numbers", "11 %"]
    assert rows[1] == ["photo", "1 × 4 × 4", "10 of 10", "images", "0 %"]
    assert text[16:] == ["observed views", "samples", "6 (60 %)", "4 (40 %)"]


def test_names_are_text_and_nothing_runs():
    page = Tags(Views.of({BAD: np.ones((3, 2)), '"><img src=x>': np.ones((3, 1))})._repr_html_())
    assert page.all <= {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "span"}
    assert BAD in page.text


def test_rare_patterns_are_counted_together():
    mask = np.random.default_rng(0).random((200, 6)) < 0.6
    page = Tags(html.patterns(mask, list("abcdef")))
    patterns = {tuple(row) for row in mask.tolist()}
    rest = len(patterns) - html.PATTERNS_SHOWN
    assert page.text[-1].startswith(f"{rest} rarer patterns: ")


def test_large_views_are_shown_without_their_kind(monkeypatch):
    monkeypatch.setattr("vedute.data.views.MOST_SUMMARIZED", 3)
    assert "numbers" not in Views.of([np.random.default_rng(0).normal(size=(4, 2))])._repr_html_()


def test_an_empty_selection_has_a_page():
    assert "0 samples" in Views.of([np.ones((3, 2))])[:0]._repr_html_()
