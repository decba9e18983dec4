"""Help pages at several widths, errors about what was typed, and completion."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from cachegrind_bench.cli.help import options_of, summary_of
from cachegrind_bench.cli.main import COMMANDS, SECTIONS, cli

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import CommandLine
    from tests.conftest import Golden

NARROW, USUAL, WIDE = 60, 80, 100
LONGEST_LIST = 20  # options under one heading


def commands(context: click.Context) -> Iterator[click.Context]:
    """Yield the context of every command, groups and their commands, too."""
    assert isinstance(context.command, click.Group)
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        assert command is not None
        below = click.Context(command, info_name=name, parent=context)
        yield below
        if isinstance(command, click.Group):
            yield from commands(below)


ROOT = cli.make_context("cg-bench", ["run"], resilient_parsing=True)
ALL = {context.command_path.removeprefix("cg-bench "): context for context in commands(ROOT)}


# Pages


@pytest.mark.parametrize(("name", "width"), [("", NARROW), ("", USUAL), ("run", NARROW)])
def test_a_help_page_is_as_it_was(
    cg_bench: CommandLine, golden: Golden, monkeypatch: pytest.MonkeyPatch, name: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    golden(f"help/{name or 'cg-bench'}-{width}.txt", cg_bench(*name.split(), "--help").out)


@pytest.mark.parametrize("width", [NARROW, USUAL, WIDE])
@pytest.mark.parametrize("name", ["", *ALL])
def test_no_line_of_a_help_page_is_wider_than_the_terminal_but_for_examples(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    page = cg_bench(*name.split(), "--help").out
    lines = page.partition("Examples:")[0].splitlines()
    # A term that is too long to be on a line with what it means is on one of its own, and cannot be broken.
    assert [line for line in lines if len(line) > width and not line.startswith("  --")] == []


def test_the_summaries_of_all_commands_are_sentences_on_one_line_of_the_usual_width(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(USUAL))
    for name in ["", *(name for name, context in ALL.items() if isinstance(context.command, click.Group))]:
        page = cg_bench(*name.split(), "--help").out.splitlines()
        path = f"{name} " if name else ""
        found = {
            item.removeprefix(path) for item in ALL if item.startswith(path) and " " not in item.removeprefix(path)
        }
        lines = {line.split()[0]: line for line in page if line.startswith("  ") and line.split()[0] in found}
        assert found <= lines.keys()
        assert all(line.endswith(".") for line in lines.values()), lines


def test_commands_are_under_headings_and_each_once() -> None:
    assert sum(map(len, SECTIONS.values())) == len(COMMANDS) == len({name for name in ALL if " " not in name})


@pytest.mark.parametrize("name", ALL)
def test_many_options_are_under_headings(name: str) -> None:
    sections = options_of(ALL[name].command, ALL[name])
    assert max(map(len, sections.values())) < LONGEST_LIST
    assert all(sections.values())
    assert list(sections)[-1] in ("Options", "Other options")  # which has --help


def test_a_summary_is_the_first_sentence() -> None:
    assert (
        summary_of(click.Command("x", help="Do this,\nand that: one after the other. Then rest.\n\nMore."))
        == "Do this, and that."
    )
    assert summary_of(click.Command("x")) == "."


# Errors


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("rnu", "there is no command 'rnu'\n  did you mean 'cg-bench run'?\n"),
        ("export", "there is no command 'export'\n  did you mean 'cg-bench history export'?\n"),
        ("compare a b", "there is no command 'compare'\n  did you mean 'cg-bench diff' or 'cg-bench ci compare'?\n"),
        ("history lst", "'history' has no command 'lst'\n  did you mean 'cg-bench history list'?\n"),
        ("history diff", "'history' has no command 'diff'\n  did you mean 'cg-bench diff'?\n"),
        ("./prog fast", "there is no command './prog'\n  to measure a program: cg-bench run -- ./prog fast\n"),
        (
            "sh -c ls",
            "there is no command 'sh'\n  did you mean 'cg-bench show'?\n  to measure a program: cg-bench run -- sh -c ls\n",
        ),
        ("zzz", "there is no command 'zzz'\n  'cg-bench --help' lists the commands\n"),
        (
            "run --layots 3 -- true",
            "'run' has no option --layots\n  did you mean --layouts?\n  'cg-bench run --help' lists its options\n",
        ),
        (
            "diff --save",
            "'diff' has no option --save\n  --save is an option of 'cg-bench run'\n  'cg-bench diff --help' lists its options\n",
        ),
        (
            "ab main --jsn",
            "'ab' has no option --jsn\n  did you mean --json?\n  'cg-bench ab --help' lists its options\n",
        ),
        ("--nonsense", "there is no option --nonsense\n  'cg-bench --help' lists its options\n"),
        (
            "show",
            "missing argument 'FILE'\n  usage: cg-bench show [OPTIONS] FILE\n  'cg-bench show --help' says more\n",
        ),
        ("run --store", "option '--store' requires an argument\n"),
    ],
)
def test_what_does_not_exist_gets_the_nearest_that_does(cg_bench: CommandLine, words: str, told: str) -> None:
    found = cg_bench(*words.split())
    assert (found.code, found.out, found.err) == (2, "", f"cg-bench: error: {told}")


def test_an_option_of_other_commands_is_named_with_them(cg_bench: CommandLine) -> None:
    first, second, third = cg_bench("run", "--thresold", "3").err.splitlines()
    assert first == "cg-bench: error: 'run' has no option --thresold"
    assert second.startswith("  --threshold is an option of 'cg-bench diff', 'cg-bench ab', 'cg-bench check'")
    assert third == "  'cg-bench run --help' lists its options"


# Completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(cg_bench: CommandLine, shell: str) -> None:
    told = cg_bench("completion", shell)
    assert (told.code, told.err) == (0, "")
    assert f"_CG_BENCH_COMPLETE={shell}_complete" in told.out.replace(" ", "").replace("env", "")


def test_bash_completes_commands_and_options(cg_bench: CommandLine) -> None:
    programs = Path(sys.executable).parent
    assert (programs / "cg-bench").exists()
    script = cg_bench("completion", "bash").out
    complete = 'COMPREPLY=(); COMP_WORDS=({}) COMP_CWORD={}; _cg_bench_completion cg-bench; echo "${{COMPREPLY[@]}}"'
    code = "\n".join([script, complete.format("cg-bench basel", 1), complete.format("cg-bench diff --thresh", 2)])
    done = subprocess.run(
        ["bash", "-c", code], env={"PATH": f"{programs}:/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        "baseline",
        "--threshold --threshold-ir --threshold-allocations --threshold-cache",
    ]
