"""The file of accepted changes: read strictly, since a misspelt line would hide or show the wrong thing."""

from __future__ import annotations

import pytest

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.history.accepted import Accepted, accepted_here, parse_accepted, without_effect
from tests.unit.detecting import line, sha

GOOD = """\
# What we meant.
[[accepted]]
benchmark = "parse-*"
commit = "0123456789ABCDEF"
reason = "checks its input now"

[[accepted]]
benchmark = "sieve[n=3]"
commit = "7654321"
reason = '''
Larger table,
fewer misses.'''
"""
ENTRY = '[[accepted]]\nbenchmark = "a"\ncommit = "0123456"\nreason = "b"\n'


def error(text: str) -> FileFormatError:
    with pytest.raises(FileFormatError) as caught:
        parse_accepted(text, path="cg-bench-accepted.toml")
    assert caught.value.message.startswith("cg-bench-accepted.toml")
    return caught.value


def test_entries_are_read_in_their_order() -> None:
    assert parse_accepted(GOOD, path="x") == (
        Accepted(benchmark="parse-*", commit="0123456789abcdef", reason="checks its input now", line=2),
        Accepted(benchmark="sieve[n=3]", commit="7654321", reason="Larger table,\nfewer misses.", line=7),
    )


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "accepted = []\n"])
def test_a_file_may_hold_nothing(text: str) -> None:
    assert parse_accepted(text, path="x") == ()


@pytest.mark.parametrize("key", ["benchmark", "commit", "reason"])
def test_each_key_is_needed(key: str) -> None:
    text = "".join(item for item in ENTRY.splitlines(keepends=True) if not item.startswith(key))
    found = error("\n" + text)
    assert f"{key} is missing" in found.message
    assert found.line == 2


@pytest.mark.parametrize("key", ["benchmark", "commit", "reason"])
@pytest.mark.parametrize(
    ("value", "told"), [("3", "must be a text, not 3"), ('" "', "is empty"), ("[]", "must be a text")]
)
def test_each_value_is_a_text(key: str, value: str, told: str) -> None:
    text = "".join(f"{key} = {value}\n" if item.startswith(key) else item for item in ENTRY.splitlines(keepends=True))
    found = error(text)
    assert f"{key} {told}" in found.message
    assert found.line == {"benchmark": 2, "commit": 3, "reason": 4}[key]


def test_an_unknown_key_is_named_with_its_line_and_the_one_that_was_meant() -> None:
    found = error(ENTRY + 'benchmarks = "c"\n')
    assert found.line == 5
    assert "did you mean 'benchmark'?" in found.message


def test_a_key_outside_the_tables_is_unknown() -> None:
    assert error('benchmark = "a"\n' + ENTRY).line == 1


def test_another_table_is_unknown() -> None:
    assert error(ENTRY + '[[acepted]]\nreason = "x"\n').line == 5


def test_a_table_in_single_brackets_is_explained() -> None:
    found = error(ENTRY.replace("[[", "[").replace("]]", "]"))
    assert "[[accepted]]" in found.message
    assert found.line == 1


def test_elements_that_are_no_tables_are_refused() -> None:
    assert "not a table" in error("accepted = [3]\n").message


@pytest.mark.parametrize("commit", ["main", "012345", "HEAD~1", "0" * 65])
def test_a_commit_is_at_least_seven_digits(commit: str) -> None:
    found = error(ENTRY.replace("0123456", commit))
    assert found.line == 3
    assert found.hint is not None
    assert "7 digits" in found.hint


@pytest.mark.parametrize("text", ["[[accepted]", 'x = "a'])
def test_what_is_not_toml_names_the_file(text: str) -> None:
    assert "not valid TOML" in error(text).message


def test_the_line_of_a_syntax_error_is_named() -> None:
    assert error(ENTRY + "what is this\n").line == 5


def test_a_pattern_holds_for_the_benchmarks_it_matches() -> None:
    entry = parse_accepted(GOOD, path="x")[0]
    assert [entry.concerns(name) for name in ("parse-xml", "parse-", "sieve")] == [True, True, False]


def test_brackets_in_a_pattern_are_meant_as_they_are() -> None:
    entry = parse_accepted(GOOD, path="x")[1]
    assert [entry.concerns(name) for name in ("sieve[n=3]", "sieven")] == [True, False]


def test_commits_are_found_on_the_line_by_their_first_digits() -> None:
    entries = [
        Accepted(benchmark="*", commit=sha(5), reason="all", line=1),
        Accepted(benchmark="*", commit=sha(2)[:7], reason="short", line=2),
        Accepted(benchmark="*", commit="fffffff", reason="elsewhere", line=3),
        Accepted(benchmark="other", commit=sha(3), reason="other", line=4),
    ]
    assert [(place, entry.line) for place, entry in accepted_here("sieve", line(9), entries)] == [(2, 2), (5, 1)]


def test_entries_without_effect_are_reported() -> None:
    entries = [
        Accepted(benchmark="sie*", commit=sha(5), reason="good", line=1),
        Accepted(benchmark="seive", commit=sha(5), reason="misspelt", line=2),
        Accepted(benchmark="sieve", commit="fffffff", reason="elsewhere", line=3),
    ]
    assert [entry.line for entry in without_effect(entries, line(9), ["sieve"])] == [2, 3]
