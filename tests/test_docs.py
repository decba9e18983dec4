"""The documentation tells the truth about the command line: it is generated where it can be, and checked where not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from cachegrind_bench.cli.main import COMMANDS, cli
from scripts import trips

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
INDEX = ROOT / "docs" / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.md")])
SOURCES = sorted((ROOT / "cachegrind_bench").rglob("*.py"))
LONGEST_README = 180

# [text](target), outside code; no title in the project's links.
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
# Words that follow `cg-bench` or a path to it, where a command is typed; options and the package's name are none.
COMMAND_WORD = re.compile(r"(?:^|[\s`/(])cg-bench +([a-z][a-z-]*)")
OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


def load(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def leaves(name: str) -> list[click.Command]:
    """Return the command, or the commands of this group."""
    command = load(name)
    return list(command.commands.values()) if isinstance(command, click.Group) else [command]


def prose(text: str) -> str:
    return FENCE.sub("", text)


def typed(text: str) -> str:
    """Return what is meant to be typed or is code: fenced and indented blocks, and text in backticks."""
    fenced = [match[0] for match in FENCE.finditer(text)]
    rest = FENCE.sub("", text)
    indented = re.findall(r"^ {4}.*$", rest, re.MULTILINE)
    return "\n".join([*fenced, *indented, *re.findall(r"`([^`\n]+)`", rest)])


def anchors(text: str) -> set[str]:
    """Return the anchors GitHub makes of a page's headings."""
    plain = (re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(prose(text)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def test_the_reference_of_the_command_line_is_current() -> None:
    script = ROOT / "scripts" / "generate_cli_docs.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_code_map_has_nearly_as_many_lines_for_each_folder_as_there_are() -> None:
    text = trips.MAP.read_text(encoding="utf-8")
    written, now = (trips.FLOOR.findall(each.partition("## Where")[0]) for each in (text, trips.with_lines(text)))
    assert len(written) > 10
    for (names, said), (_, real) in zip(written, now, strict=True):
        for one, other in zip(said.split(";"), real.split(";"), strict=True):
            apart = abs(int(one.replace(",", "")) - int(other.replace(",", "")))
            assert apart <= 300, f"{names}: {said} instead of {real}; python scripts/trips.py --write"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    command = load(name)
    assert command.help
    assert f"cg-bench {name}" in (command.epilog or "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    items = [item for command in leaves(name) for item in command.params]
    silent = [item.opts for item in items if isinstance(item, click.Option) and not item.help]
    assert silent == []


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"completion"}))
def test_every_command_appears_in_the_readme(name: str) -> None:
    assert f"cg-bench {name}" in typed(README.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_types_a_command_that_does_not_exist(page: Path) -> None:
    words = set(COMMAND_WORD.findall(typed(page.read_text(encoding="utf-8"))))
    assert words - COMMANDS.keys() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_types_an_option_that_does_not_exist(page: Path) -> None:
    items = [item for name in COMMANDS for command in leaves(name) for item in command.params]
    known = {option for item in items for option in item.opts} | {"--help", "--version"}
    unknown: list[str] = []
    for line in typed(page.read_text(encoding="utf-8")).splitlines():
        match = re.match(rf".*?\bcg-bench +(?:{'|'.join(COMMANDS)})\b(.*)", line)
        # What follows `--` belongs to the measured command, and what follows `|` to another one.
        ours = re.split(r"(?:^|\s)(?:--|\|)(?:\s|$)", match[1])[0] if match else ""
        bare = re.sub(r"'[^']*'", "", ours.split("#")[0])
        unknown += [option for option in OPTION.findall(bare) if option not in known]
    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    broken: list[str] = []
    for target in LINK.findall(prose(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        known = there.exists() and (not anchor or anchor in anchors(there.read_text(encoding="utf-8")))
        if not known or not there.is_relative_to(ROOT):
            broken.append(target)
    assert broken == []


def test_the_index_of_the_documentation_links_every_page_and_the_readme_links_the_index() -> None:
    linked = {target.partition("#")[0] for target in LINK.findall(INDEX.read_text(encoding="utf-8"))}
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - linked == {INDEX.name}
    assert "docs/README.md" in LINK.findall(README.read_text(encoding="utf-8"))


def test_the_readme_stays_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < LONGEST_README


def test_the_readme_begins_with_a_picture() -> None:
    text = README.read_text(encoding="utf-8")
    assert re.search(r"^!\[", text[: text.index("\n## ")], re.MULTILINE)


def test_the_readme_has_the_two_commands_that_do_everything() -> None:
    assert {"make demo", "make test"} <= set(re.findall(r"`(make [a-z-]+)`", README.read_text(encoding="utf-8")))


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples" / "workflows").glob("*.*")))
def test_the_readmes_sed_puts_a_clone_into_every_example(example: str, tmp_path: Path) -> None:
    (command,) = re.findall(r"^sed \"s/OWNER.*?benchmarks\.yml$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    clone, project = tmp_path / "cachegrind-bench", tmp_path / "project"
    shutil.copytree(ROOT / "examples", clone / "examples")
    (project / ".github" / "workflows").mkdir(parents=True)
    identity = "git -c user.name=T -c user.email=t@example.org -c commit.gpgSign=false"
    made = f"cd {clone} && git init -q && git add . && {identity} commit -qm 1 && cd {project} && "
    subprocess.run(["bash", "-ec", made + command.replace("pull-request.yml", example)], check=True)
    filled = (project / ".github" / "workflows" / "benchmarks.yml").read_text("utf-8")
    assert re.search(r"\byou/cachegrind-bench@[0-9a-f]{40}\b", filled)
    assert "OWNER_OF_YOUR_COPY" not in filled
    assert "0" * 40 not in filled


def test_the_devcontainer_runs_scripts_that_exist_and_the_recipe_has_its_rights() -> None:
    text = re.sub(
        r"^\s*//.*", "", (ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"), flags=re.MULTILINE
    )
    container = json.loads(text)
    scripts = re.findall(r"scripts/[\w.]+", container["onCreateCommand"])
    assert scripts
    assert all((ROOT / script).exists() for script in scripts)
    recipe = (ROOT / "docs" / "containers.md").read_text("utf-8").replace("\\\n", "")
    rights = [*container["securityOpt"], *container["capAdd"], " ".join(container["runArgs"])]
    assert all(right in recipe for right in rights)


# Phrases of a private language that came back again and again, and what to write instead.
TICS = {
    r"\b(?:is|are|be|was|were) told\b(?! to\b)": "report, say, with a warning",
    r"\btold as\b": "reported as",
    r"\btells? (?:nothing|of)\b": "describe, show, say nothing about",
    r"\bto and fro\b": "up and down, unstable",
    r"\bstands? (?:there|in)\b": "is in",
    r"(?<!there )\bis no (?!longer\b|more\b)[a-z]": "is not a",
    # `None` is the value in Python.
    r"(?<!there )(?<!`stats` )\b(?:is|are) (?-i:none)\b": "is not a",
    r"(?<!there )\bare no (?!longer\b|more\b)[a-z]": "are not",
    r"\b(?:cannot be|not to be) had\b": "cannot be read, is missing",
    r"\bso many\b": "this many, at most N",
    r"\b(?-i:[Bb]eside)\b": "next to, at the same time",
    r"\b(?:names?|fits?) no\b": "is not a, does not match any",
    r"\b(?:for|to|as|of|than) who\b": "whoever, a program that",
}


def tics(numbered: Iterator[tuple[int, str]]) -> list[str]:
    return [
        f"{number}: {match[0]!r}: write {instead!r}"
        for number, line in numbered
        for tic, instead in TICS.items()
        for match in re.finditer(tic, line, re.IGNORECASE)
    ]


def texts(source: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a Python file's comments, docstrings and other strings, with their numbers."""
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    with source.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in kinds:
                yield from enumerate(token.string.splitlines(), token.start[0])


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_pages_are_written_in_plain_english(page: Path) -> None:
    assert tics(enumerate(page.read_text(encoding="utf-8").splitlines(), 1)) == []


@pytest.mark.parametrize("folder", sorted({path.parent for path in SOURCES}), ids=lambda path: path.name)
def test_the_texts_in_the_code_are_written_in_plain_english(folder: Path) -> None:
    found = {path.name: tics(texts(path)) for path in SOURCES if path.parent == folder}
    assert {name: lines for name, lines in found.items() if lines} == {}


# Names that nobody has registered (docs/publishing.md): whoever does runs code wherever they are installed from.
UNCLAIMED = re.compile(
    r"""(?:uses:\s*|github\.com/)cachegrind-bench/|pip\S*\s+install\s[^#`|]*?[\s"']cachegrind-bench\b|PACKAGE:-cachegrind"""
)


@pytest.mark.parametrize(
    "path",
    [*PAGES, *sorted((ROOT / "examples" / "workflows").rglob("*.*")), ROOT / "cachegrind_bench" / "store" / "open.py"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_nothing_is_installed_by_a_name_that_nobody_has_registered(path: Path) -> None:
    text = path.read_text("utf-8")
    if path.name != "publishing.md":  # which says what to write once they are
        assert UNCLAIMED.findall(text) == []
    placeholders = {"0" * 40, "000000"}  # a commit in full; cut short in publishing.md
    assert set(re.findall(r"cachegrind-bench@(\w+)", text)) <= placeholders
