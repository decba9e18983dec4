"""Patterns over text that others may have written take time in proportion to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.config.toml_lines import syntax_error
from cachegrind_bench.harness import go, jmh
from cachegrind_bench.history.formats import github_action_benchmark
from cachegrind_bench.model.text import without_password
from cachegrind_bench.valgrind import code_log
from cachegrind_bench.vcs import worktree

if TYPE_CHECKING:
    from collections.abc import Callable

_MANY = 100_000  # a square of it would take minutes


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (go._FUNCTION.findall, "func Benchmark(" + " " * _MANY),
        (github_action_benchmark._WORD.findall, "A" * _MANY),
        (jmh._benchmarks, "Benchmarks:\na\n" + '  param "a" = {a' * _MANY),
        (code_log._function, "a /a:7:7" * _MANY),
        (without_password, "git:" + ":" * _MANY),
        (lambda text: syntax_error("Invalid value (at end of document)", "", text, ()), "a = [1," + " " * _MANY + "x"),
        (worktree._LOCKED.findall, "worktree a\n" * _MANY),
        (worktree._LOCKED.findall, "worktree " * _MANY),
    ],
)
def test_a_hostile_text_is_read_in_time_in_proportion_to_it(work: Callable[[str], object], text: str) -> None:
    begun = time.process_time()
    work(text)
    assert time.process_time() - begun < 2


def test_words_and_lines_are_found_as_before() -> None:
    assert github_action_benchmark._WORD.findall("commit=ab é2=x a.b=c") == [("commit", "ab"), ("2", "x"), ("b", "c")]
    assert go._FUNCTION.findall("\nfunc BenchmarkA_1(b *testing.B) {}\nfunc Benchmarks(b *testing.B) {}") == [
        "BenchmarkA_1"
    ]
