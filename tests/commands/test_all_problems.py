"""inspect and fit list all problems of all files at once, each with what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from vedute import Views, io
from vedute.cli import app
from vedute.data.problems import ProblemsError, all_at_once, noted

N = 12
GOOD = "id,x,y\n" + "".join(f"p{i},{i}.5,{i * i % 7}.25\n" for i in range(N))


def put(place, **files):
    place.mkdir()
    for name, content in files.items():
        ending = name.rpartition("_")[2]
        (place / f"{name.removesuffix('_' + ending)}.{ending}").write_text(content)
    return place


def table(**columns):
    names = [*columns]
    lines = [",".join(["id", *names])]
    for i in range(N):
        lines.append(",".join([f"p{i}", *(str(columns[c][i]) for c in names)]))
    return "\n".join(lines) + "\n"


def problems(*words):
    result = CliRunner().invoke(app, [str(w) for w in words])
    assert result.exit_code == 2, result.output + result.stderr
    assert "Traceback" not in result.stderr
    assert "bug" not in result.stderr
    head, *lines = result.stderr.strip().splitlines()
    if not lines:
        return [head.removeprefix("vedute: ")]
    assert head == f"vedute: {len(lines)} problems:"
    assert all(line.startswith("  - ") for line in lines)
    return [line.removeprefix("  - ") for line in lines]


def both(tmp_path, source, *expected, options=()):
    """What is said by inspect and fit: these texts, each in a problem of its own."""
    for words in (["inspect", source], ["fit", source, "-o", tmp_path / "run"]):
        said = problems(*words, *options)
        assert len(said) == len(expected), said
        for text in expected:
            assert sum(text in line for line in said) == 1, (text, said)
        assert all(";" in line for line in said)
    assert not (tmp_path / "run").exists()
    return said


def test_problems_of_several_columns_and_files(tmp_path):
    values = [f"{i}.5" for i in range(N)]
    a = table(
        note=[f"said {i}" for i in range(N)],
        sex=["male", "female"] * (N // 2),
        crp=["low" if i in (3, 8) else values[i] for i in range(N)],
        visit=["soon" if i == 2 else f"2024-01-{i + 1:02}" for i in range(N)],
        day=["01/02/2024"] * N,
        empty=[""] * N,
        good=values,
    )
    b = table(x=["inf" if i == 4 else values[i] for i in range(N)], gone=["NA"] * N)
    source = put(tmp_path / "d", a_csv=a, b_csv=b, c_csv=GOOD)
    said = both(
        tmp_path,
        source,
        "a.csv, column 'note', row 'p0' holds 'said 0'",
        "a.csv, column 'sex', row 'p0' holds 'male', not a number; --one-hot",
        "a.csv, column 'crp', row 'p3' holds 'low' among numbers",
        "a.csv, column 'visit', row 'p2' holds 'soon' among dates",
        "a.csv, column 'day' holds dates like '01/02/2024'",
        "view 'a', column 'empty' has no value; drop the column (--drop empty)",
        "view 'b': row 'p4' has infinite values",
        "view 'b', column 'gone' has no value; drop the column (--drop gone)",
    )
    assert sum("(also row 'p8')" in line for line in said) == 1
    assert sum("--drop note leaves it out" in line for line in said) == 1
    assert sum("--drop day" in line for line in said) == 1


def test_broken_files_do_not_hide_the_others(tmp_path):
    source = put(
        tmp_path / "d",
        a_csv="",
        b_csv="id,x\n",
        c_csv=table(text=["red", "blue"] * (N // 2), x=range(N)),
        d_csv=GOOD + "p3,1,2\n",
        e_csv=GOOD + ",1,2\n" + "p2,1,2\n",
        f_csv=GOOD + "p99,1,2,3\n",
        g_xls="old",
        h_csv=GOOD,
    )
    both(
        tmp_path,
        source,
        "a.csv is empty",
        "b.csv has no rows",
        "c.csv, column 'text', row 'p0' holds 'red'",
        "d.csv: id 'p3' occurs twice",
        "e.csv: row 13 (after 'p11') has no sample id",
        "e.csv: id 'p2' occurs twice",
        "f.csv, line 14 has 4 fields, the header 3",
        "g.xls is a spreadsheet; export",
    )


def test_options_are_checked_with_the_rest(tmp_path):
    source = put(tmp_path / "d", a_csv=table(note=["red"] * N, x=range(N)), b_csv=GOOD)
    both(
        tmp_path,
        source,
        "a.csv, column 'note', row 'p0' holds 'red'",
        "has no column 'group' for --label",
        "has no column 'yy' for --drop; did you mean 'y'?",
        options=["--label", "group", "--drop", "yy"],
    )


def test_one_problem_is_one_sentence(tmp_path):
    source = put(tmp_path / "d", a_csv=table(note=["red"] * N, x=range(N)), b_csv=GOOD)
    both(tmp_path, source, "a.csv, column 'note', row 'p0' holds 'red', not a number")


def test_no_problem_follows_from_another(tmp_path):
    """A column that cannot be read leaves rows, views and labels without values."""
    only = table(note=["red"] * N)
    rows = "id,x\n" + "".join(f"q{i},{i}\n" for i in range(N))
    both(
        tmp_path,
        put(tmp_path / "d", a_csv=only, b_csv=rows),
        "a.csv, column 'note', row 'p0' holds 'red'",
    )


def test_problems_of_one_table(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(table(r1=range(N), r2=["red", "blue"] * (N // 2), s1=["x"] * N, s2=range(N)))
    spec = tmp_path / "s.toml"
    spec.write_text('[views]\nr = "r*"\ns = ["s1", "s2", "s3"]\nt = "t_*"\n')
    both(
        tmp_path,
        path,
        "column 'r2', row 'p0' holds 'red'",
        "column 's1', row 'p0' holds 'x'",
        "has no column 's3' for view 's'",
        "has no column 't_*' for view 't'",
        "has no column 'why' for --label",
        options=["--views", spec, "--label", "why"],
    )


def test_problems_of_a_workbook(tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(
        {"note": ["red"] * N, "x": range(N)}, index=pd.Index([f"p{i}" for i in range(N)], name="id")
    )
    with pd.ExcelWriter(tmp_path / "d.xlsx") as book:
        frame.to_excel(book, sheet_name="a")
        frame.rename({"p1": "p0"}).to_excel(book, sheet_name="b")
    both(
        tmp_path,
        tmp_path / "d.xlsx",
        "d.xlsx/a, column 'note', row 'p0' holds 'red'",
        "d.xlsx/b: id 'p0' occurs twice",
        "d.xlsx/b, column 'note', row 'p0' holds 'red'",
    )


def test_problems_of_arrays(tmp_path):
    a = np.ones((N, 3)) * np.arange(N)[:, None]
    b = a.copy()
    a[2, 1], b[5] = np.inf, -np.inf
    np.savez(tmp_path / "d.npz", a=a, b=b)
    both(
        tmp_path,
        tmp_path / "d.npz",
        "view 'a': row 2 has infinite values",
        "view 'b': row 5 has infinite values",
    )


def test_there_is_an_end_to_the_list(tmp_path):
    columns = {f"c{j}": [f"t{j} {i}" for i in range(N)] for j in range(70)}
    result = CliRunner().invoke(
        app, ["inspect", str(put(tmp_path / "d", a_csv=table(**columns), b_csv=GOOD))]
    )
    assert result.exit_code == 2
    lines = result.stderr.strip().splitlines()
    assert lines[0] == "vedute: 70 problems:"
    assert lines[-1] == "  - ... and 20 more"
    assert len(lines) == 52


def test_elsewhere_the_first_error_is_raised_as_ever(tmp_path):
    source = put(tmp_path / "d", a_csv=table(u=["red"] * N, v=["blue"] * N), b_csv=GOOD)
    with pytest.raises(ValueError, match="column 'u', row 'p0' holds 'red'") as error:
        io.read(source)
    assert not isinstance(error.value, ProblemsError)
    with pytest.raises(ProblemsError, match=r"'u'.*\n.*'v'") as errors, all_at_once():
        io.read(source)
    assert len(errors.value.sentences) == 2
    frame = pd.DataFrame({"u": ["red"] * N, "v": ["blue"] * N})
    with pytest.raises(ProblemsError, match=r"'u'.*\n.*'v'"), all_at_once():
        Views.of(frame)


def test_other_errors_are_not_gathered():
    with pytest.raises(ZeroDivisionError), all_at_once(), noted():
        1 / 0  # noqa: B018
    with pytest.raises(KeyboardInterrupt), all_at_once(), noted():
        raise KeyboardInterrupt
