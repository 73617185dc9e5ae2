"""The command line inside tests."""

from typer.testing import CliRunner

from vedute.cli import app


def short_mvp(steps, warmup):
    """Words for `fit`: a small MVP whose training takes a second."""
    settings = (f"steps={steps}", f"warmup={warmup}", "hidden=(16,)", "device=cpu")
    return ["--method", "mvp", *(word for pair in settings for word in ("--set", pair))]


def vedute_(*words):
    return CliRunner().invoke(app, [str(w) for w in words], prog_name="vedute")


def done(*words):
    """What it printed; it must end well."""
    result = vedute_(*words)
    assert result.exit_code == 0, result.output + result.stderr
    return result.stdout


def refused(*words):
    """One sentence on stderr, exit code 2."""
    result = vedute_(*words)
    assert result.exit_code == 2, result.output
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stderr.startswith("vedute: ")
    return result.stderr
