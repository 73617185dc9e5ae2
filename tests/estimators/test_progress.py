"""What is shown while methods learn, why training ended, and callbacks."""

from __future__ import annotations

import logging
import pickle
import re
import sys
from io import StringIO
from threading import Thread
from time import sleep
from types import SimpleNamespace

import numpy as np
import pytest
from every_method import METHODS, small
from rich.console import Console
from sklearn.base import clone

from vedute import DCCA, MVP, BestPair, Blend, Views, load
from vedute.analysis import comparison
from vedute.estimators import imputation, learner, progress
from vedute.estimators.progress import Task, lines
from vedute.methods import blend
from vedute.methods.best_pair import for_views
from vedute.methods.fills.lowrank_fill import LowRankFill
from vedute.methods.fills.mean_fill import MeanFill
from vedute.report.data import ended

NAN = np.nan


def data(n=200, views=3):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 2))
    X = [z @ rng.normal(size=(2, 4)) for _ in range(views)]
    X[0][: n // 5] = NAN
    return X


@pytest.fixture
def terminal(monkeypatch):
    """A terminal, as text; every state of a task is written to it."""
    screen = StringIO()
    console = Console(force_terminal=True, file=screen, width=120)
    monkeypatch.setattr(progress, "_console", lambda: console)
    monkeypatch.setattr(progress.Terminal, "refresh", lambda self: self.live.refresh())
    return screen


@pytest.fixture
def notebook(monkeypatch):
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(progress, "PER_SECOND", float("inf"))


def text(screen):
    """What was written, without colors and movements."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())


def staying(screen):
    """Lines that are not written over."""
    last = re.compile(r".*: .*(done|for \d+ steps|interrupted)")
    return [line for line in text(screen).splitlines() if last.fullmatch(line)]


# Tasks.


def test_a_task_that_is_not_counted_lends_its_name():
    outer, inner = Task("comparing", 3, "method"), Task("MVP", 9, "step")
    three = [outer, Task("Blend"), inner]
    assert lines(three) == [("comparing", outer), ("Blend · MVP", inner)]
    assert lines([]) == []
    assert [name for name, _ in lines([Task("Blend"), Task("MeanFill")])] == ["Blend · MeanFill"]


def test_the_time_left_is_that_of_the_steps_before(monkeypatch):
    monkeypatch.setattr(progress, "monotonic", lambda: 30.0)
    assert Task("a", 100, "step", done=25, since=0.0).status() == (
        "step 25 of 100 · about 2 min left"
    )
    assert Task("a", 100, "step", done=50, since=0.0, note="b").status() == (
        "step 50 of 100 · about 30 s left · b"
    )
    assert Task("a", 100, "step", since=0.0).status() == "step 0 of 100"
    assert Task("a", 100, "run", done=1, since=0.0, left=7200).status().endswith("about 2.0 h left")
    assert Task("a").status() == ""


# A terminal.


def test_a_bar_with_step_stage_error_and_time_left(terminal):
    small(MVP).fit(data())
    assert re.search(
        r"MVP ━\S+ step 12 of 12 · about 0 s left · stage \d · hidden error 0\.\d+", text(terminal)
    )
    assert "stage 1 · loss" in text(terminal)  # before an error is measured
    first, second = staying(terminal)
    assert first == "MVP: all 12 steps done"
    assert re.fullmatch(r"MVP: second training, with all views: all \d+ steps done", second)


def test_epochs_are_counted_where_they_are_given(terminal):
    small(MVP, epochs=3).fit(data())
    assert "epoch 3 of 3" in text(terminal)
    assert staying(terminal) == ["MVP: all 3 epochs done"]


def test_blend_names_the_expert_that_learns(terminal):
    experts = ("mvp", "lowrank_fill", "kernel_fill", "mean_fill")
    small(Blend, experts=experts).fit(data())
    for name in ("MVP", "LowRankFill", "KernelFill", "MeanFill"):
        assert f"Blend · {name} " in text(terminal)
    assert re.search(r"Blend · KernelFill ━\S+ regression 5 of 6 · about \d+ s", text(terminal))
    assert staying(terminal)[0] == "Blend · MVP: all 12 steps done"


@pytest.mark.slow
def test_blend_names_experts_that_learn_elsewhere_while_it_waits(terminal, monkeypatch):
    monkeypatch.setattr(blend, "pays", lambda data: True)
    small(Blend, experts=("mvp", "lowrank_fill", "mean_fill")).fit(data())
    assert "Blend · LowRankFill, MeanFill " in text(terminal)


def test_best_pair_names_its_pair(terminal):
    BestPair(small(DCCA, random_state=None), random_state=0).fit(data())
    for pair in ("view0+view1", "view0+view2", "view1+view2"):
        assert f"BestPair · {pair}: all 12 steps done" in staying(terminal)


def test_a_comparison_counts_methods_and_shows_the_one_that_learns(terminal):
    trial = comparison.Trial.of(Views.of(data()), 0)
    comparison.compare(trial, {"mvp": small(MVP), "mean_fill": MeanFill()}, None)
    assert re.search(r"comparing ━\S+ method 1 of 2 · about \d+ s left", text(terminal))
    assert re.search(r"MVP +━\S+ step 12 of 12", text(terminal))
    assert not staying(terminal)


def test_imputing_many_rows_shows_how_far_it_is(terminal, monkeypatch):
    model = MeanFill(verbose=False).fit(data())
    model.set_params(verbose=None)
    monkeypatch.setattr(imputation, "DECODED_ROWS", 20)
    model.impute(data())
    assert not text(terminal)
    monkeypatch.setattr(learner, "MANY_ROWS", 200)
    model.impute(data())
    assert re.search(r"imputing ━\S+ row 20 of 200 · about", text(terminal))
    model.explain(data())
    assert re.search(r"explaining ━\S+ view 2 of 3 · about", text(terminal))


def test_what_is_printed_meanwhile_is_kept(terminal, capsys):
    small(MVP, callbacks=[lambda r: print("here", r["step"])]).fit(data())
    assert "here 12" in capsys.readouterr().out  # not a terminal: a file stays a file


@pytest.mark.parametrize("verbose", [True, False])
def test_nothing_is_shown_where_verbose_says_so(terminal, verbose, monkeypatch):
    monkeypatch.setattr(logging.getLogger("vedute"), "handlers", [logging.NullHandler()])
    small(MVP, verbose=verbose).fit(data())
    with progress.shown(), progress.task("outer"):
        before = text(terminal)
        LowRankFill(verbose=verbose).fit(data())
        assert "LowRankFill" not in text(terminal)
    assert "outer" in before


def test_nothing_is_shown_where_nobody_looks(capfd):
    small(MVP).fit(data())
    assert capfd.readouterr() == ("", "")


def test_nothing_is_shown_by_other_threads_and_processes(terminal, monkeypatch):
    worker = Thread(target=small(MVP).fit, args=(data(),))
    worker.start()
    worker.join()
    monkeypatch.setattr(progress, "parent_process", object)
    small(MVP).fit(data())
    assert not text(terminal)


def test_a_fit_that_fails_leaves_no_bar(terminal):
    def fail(record):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        small(MVP, callbacks=[fail]).fit(data())
    assert type(progress._local.display) is progress.Display
    assert text(terminal).count("\n") < 5


# A notebook.


def test_a_line_in_a_notebook(notebook, capsys):
    small(MVP).fit(data())
    out, err = capsys.readouterr()
    assert not err
    assert "\rMVP  step 12 of 12 · about 0 s left · stage 3 · hidden error" in out
    shown = [line.split("\r")[-1].rstrip() for line in out.split("\n")]
    assert shown[0] == "MVP: all 12 steps done"
    assert shown[1].startswith("MVP: second training, with all views: all ")
    assert shown[2:] == [""]


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch, capfd):
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    small(MVP).fit(data())
    assert capfd.readouterr() == ("", "")


# Neither terminal nor notebook.


def slow(record):
    sleep(0.03)


def test_without_a_terminal_a_line_a_minute_and_one_at_the_end(monkeypatch, capfd):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.02)
    small(MVP, callbacks=[slow]).fit(data())
    out, err = capfd.readouterr()
    assert not out
    shown = err.splitlines()
    assert re.search(r"^MVP: step \d+ of 12 · about \d+ s left · stage \d · ", err, re.MULTILINE)
    assert "MVP: all 12 steps done" in shown
    assert re.fullmatch(r"MVP: ended after \d+ s", shown[-1])
    small(MVP, callbacks=[slow], verbose=False).fit(data())
    assert capfd.readouterr() == ("", "")


def test_a_log_with_a_handler_has_these_lines(monkeypatch, caplog, capfd):
    caplog.set_level(logging.INFO, "vedute")
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.02)
    small(MVP, callbacks=[slow]).fit(data())
    shown = [r.getMessage() for r in caplog.records if r.name == "vedute"]
    assert [line for line in shown if line.startswith("MVP: step ")]
    assert shown.count("MVP: all 12 steps done") == 1
    assert shown[-1].startswith("MVP: ended after")
    assert capfd.readouterr() == ("", "")


def test_methods_that_count_nothing_are_said_to_run(monkeypatch, capfd):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.02)
    with progress.shown(), progress.task("MeanFill"):
        sleep(0.1)
    shown = capfd.readouterr().err.splitlines()
    assert shown[0] == "MeanFill: running"
    assert shown[-1] == "MeanFill: ended after 0 s"


# Why training ended.


def stop(record):
    if record["step"] >= 6:
        raise KeyboardInterrupt


ENDINGS = {
    "all 12 steps done": {},
    "all 4 epochs done": {"epochs": 4},
    "hidden error has not improved for 20 steps": {"steps": 4000, "patience": 20, "lr": 0.1},
    "interrupted": {"callbacks": [stop]},
}


@pytest.mark.parametrize("reason", ENDINGS)
def test_history_log_and_bar_say_why_training_ended(reason, terminal, caplog):
    caplog.set_level(logging.INFO, "vedute")
    model = small(MVP, **ENDINGS[reason]).fit(data())
    ended = [r["ended"] for r in model.history_ if "ended" in r]
    assert ended[0] == reason
    shown = f"MVP: {reason}" in staying(terminal)
    assert shown == (reason != "interrupted")  # of which there is a warning, once
    logged = [r.getMessage() for r in caplog.records if reason in r.getMessage()]
    assert logged[0].startswith("interrupted at" if reason == "interrupted" else f"MVP: {reason}")
    assert model.learned_again_ == (len(ended) == 2)
    assert model.history_[-1]["ended"] == ended[-1]


def test_a_page_says_why_training_ended():
    history = [{"step": 1}, {"step": 2, "ended": "interrupted"}, {"step": 3, "ended": "all done"}]
    assert ended(history) == "interrupted"
    assert ended(history[:1]) == ""  # of an older version


# Callbacks.


def test_callbacks_hear_every_record_in_order():
    heard = []
    first, second = ([], [])
    calls = [lambda r: heard.append("first"), first.append, lambda r: heard.append("second")]
    model = small(MVP, callbacks=[*calls, second.append]).fit(data())
    assert model.learned_again_  # the records of both trainings
    known = [{k: v for k, v in r.items() if k != "ended"} for r in model.history_]
    assert first == second == known
    assert heard == ["first", "second"] * len(known)
    assert {"step", "epoch", "stage", "terms", "hidden_error"} <= set(first[0])


def test_callbacks_count_on_where_history_is_that_of_the_second_training_alone():
    heard = []
    model = small(MVP, again=None, callbacks=[heard.append]).fit(data(60))
    assert model.learned_again_  # too few views to hide any from the first training
    steps, kept = [r["step"] for r in heard], [r["step"] for r in model.history_]
    assert kept[-1] == 12
    assert steps == sorted(set(steps))
    assert len(steps) == 2 * len(kept)


def test_a_callback_changes_nothing(terminal):
    def spoil(record):
        record["terms"].clear()
        record["step"] = -1

    silent, heard = small(MVP, verbose=False), small(MVP, callbacks=(spoil,))
    silent.fit(data())
    heard.fit(data())
    np.testing.assert_array_equal(heard.embedding_, silent.embedding_)
    assert heard.history_ == silent.history_
    for a, b in zip(heard.impute(data()), silent.impute(data()), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("given", [1, [1], ["print"], [print, None], print])
@pytest.mark.parametrize("cls", [MVP, Blend])
def test_what_cannot_be_called_is_refused(cls, given):
    with pytest.raises(ValueError, match="callbacks must be a sequence of functions or None"):
        cls(callbacks=given).fit(data())


class Counting:
    """A callback with a state of its own."""

    count = 0

    def __call__(self, record):
        self.count += 1


@pytest.mark.parametrize("name", ["mvp", "blend", "pair"])
def test_callbacks_are_heard_through_other_methods_and_not_saved(name, tmp_path):
    heard = Counting()
    if name == "pair":
        model = for_views(small(DCCA, callbacks=[heard]), 3)
    else:
        model = small(METHODS[name], callbacks=[heard])
    model.fit(data())
    assert heard.count >= len(model.history_)
    model.save(tmp_path / "run")
    assert "callbacks" not in (tmp_path / "run" / "model.json").read_text()
    again = load(tmp_path / "run")
    assert getattr(again, "method", again).callbacks is None
    np.testing.assert_array_equal(again.transform(data()), model.transform(data()))


def test_callbacks_and_verbose_are_settings_like_others():
    model = small(MVP, callbacks=[print], verbose=False)
    copy = clone(model)
    assert copy.get_params()["callbacks"] == [print]
    assert copy.verbose is False
    assert pickle.loads(pickle.dumps(model)).callbacks == [print]
    with pytest.raises(ValueError, match="has no such setting"):
        Blend(expert_settings={"mvp__callbacks": [print]}).fit(data())


def test_a_fit_goes_on_with_other_callbacks(tmp_path):
    often = {"checkpoint": str(tmp_path), "checkpoint_minutes": 0}

    def fail(record):
        if record["epoch"] == 3:
            raise InterruptedError

    whole, heard = small(MVP).fit(data()), []
    with pytest.raises(InterruptedError):
        small(MVP, **often, callbacks=[fail]).fit(data())
    again = small(MVP, **often, callbacks=[heard.append]).fit(data())
    assert again.history_ == whole.history_
    assert heard[0]["epoch"] == 3
