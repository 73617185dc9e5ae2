"""A small study inside tests."""

from vedute_bench.runner import run as running


def small_study(folder, monkeypatch, study, load, name="tiny.toml"):
    """Yields the working folder, which has a study; its datasets are what `load` returns."""
    (folder / name).write_text(study)
    monkeypatch.chdir(folder)
    running.load.cache_clear()
    monkeypatch.setattr(running.datasets, "load", load)
    yield folder
    running.load.cache_clear()
