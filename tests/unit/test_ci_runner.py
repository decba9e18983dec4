"""Outputs and summary: whatever a value holds, it is one value, and the runner takes all of it or we cut it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cachegrind_bench.ci.runner import Runner
from cachegrind_bench.errors import UsageError
from tests.unit.samples import HOSTILE


def outputs(text: str) -> dict[str, str]:
    """Read a file of outputs as the runner does: NAME=VALUE, or NAME<<DELIMITER, lines, DELIMITER."""
    found: dict[str, str] = {}
    lines = iter(re.split(r"\r?\n", text))
    for line in lines:
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if heredoc >= 0 and (equals < 0 or heredoc < equals):
            name, delimiter = line[:heredoc], line[heredoc + 2 :]
            assert name
            assert delimiter
            value = []
            for each in lines:
                if each == delimiter:
                    break
                value.append(each)
            else:
                pytest.fail(f"no end of {name}")
            found[name] = "\n".join(value)
        else:
            assert equals > 0, f"the runner refuses {line!r}"
            found[line[:equals]] = line[equals + 1 :]
    return found


def runner(environ: dict[str, str]) -> Runner:
    return Runner(environ=environ, write=lambda _: None)


@pytest.fixture
def written(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a step, whose files may be there already."""
    return {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}


def test_outputs_are_read_back_as_they_were_set(written: dict[str, str]) -> None:
    Path(written["GITHUB_OUTPUT"]).write_text("before=1\n")
    runner(written).set_outputs({"verdict": "regression", "score": "", "max-regression": "1.5%"})
    runner(written).set_outputs({"later": "yes"})
    found = outputs(Path(written["GITHUB_OUTPUT"]).read_text())
    assert found == {"before": "1", "verdict": "regression", "score": "", "max-regression": "1.5%", "later": "yes"}


@pytest.mark.parametrize(
    "value",
    [
        "unchanged\nverdict=unchanged",
        "x\nEOF\nverdict=unchanged",
        "x\ncg-bench-\nverdict<<y\nunchanged\ny",
        "verdict<<EOF\nunchanged\nEOF",
        "\n\n",
        "=",
        "<<",
        HOSTILE,
        "::set-output name=verdict::unchanged",
    ],
)
def test_no_value_ends_early_or_sets_another_output(written: dict[str, str], value: str) -> None:
    runner(written).set_outputs({"name": value, "verdict": "regression"})
    found = outputs(Path(written["GITHUB_OUTPUT"]).read_bytes().decode())
    assert found == {"name": value, "verdict": "regression"}


def test_a_value_that_knows_the_delimiters_of_before_does_not_know_the_next(written: dict[str, str]) -> None:
    place = Path(written["GITHUB_OUTPUT"])
    runner(written).set_outputs({"one": "1", "two": "2"})
    known = re.findall(r"<<(.*)", place.read_text())
    assert len(set(known)) == 2
    assert all(len(each) > 30 for each in known)
    value = "\n".join([*known, "verdict=unchanged", *known])
    runner(written).set_outputs({"name": value})
    assert outputs(place.read_text()) == {"one": "1", "two": "2", "name": value}


def test_what_is_not_utf_8_or_endless_does_not_lose_the_other_outputs(written: dict[str, str]) -> None:
    runner(written).set_outputs({"odd": "a\udc80b\0c", "long": "ä" * 10_000_000, "verdict": "new"})
    found = outputs(Path(written["GITHUB_OUTPUT"]).read_bytes().decode("utf-8"))
    assert (found["odd"], found["verdict"]) == ("a\\udc80bc", "new")
    assert 0 < len(found["long"]) <= 100_000


def test_summaries_follow_one_another_with_a_line_between(written: dict[str, str]) -> None:
    runner(written).add_summary("### One\n\n\n")
    runner(written).add_summary("### Two")
    assert Path(written["GITHUB_STEP_SUMMARY"]).read_text() == "### One\n\n### Two\n\n"


def test_a_summary_that_github_would_refuse_is_cut_at_a_whole_character(written: dict[str, str]) -> None:
    runner(written).add_summary("ä" * 999_999)
    data = Path(written["GITHUB_STEP_SUMMARY"]).read_bytes()
    assert len(data) < 1 << 20
    assert set(data.decode("utf-8").split("\n\n")[0]) == {"ä"}
    assert "The rest is left out" in data.decode()
    runner(written).add_summary("\udc80")
    assert Path(written["GITHUB_STEP_SUMMARY"]).read_text().endswith("\\udc80\n\n")


@pytest.mark.parametrize("environ", [{}, {"GITHUB_OUTPUT": "", "GITHUB_STEP_SUMMARY": ""}])
def test_outside_of_a_job_nothing_happens(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner(environ).set_outputs({"verdict": "new"})
    runner(environ).add_summary("### New")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    place = str(tmp_path / "nowhere" / "output")
    with pytest.raises(UsageError, match=f"cannot write {place}"):
        runner({"GITHUB_OUTPUT": place}).set_outputs({"a": "b"})
    with pytest.raises(UsageError, match="which GitHub reads"):
        runner({"GITHUB_STEP_SUMMARY": str(tmp_path)}).add_summary("x")
