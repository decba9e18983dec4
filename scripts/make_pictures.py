"""Make the pictures of the README from real runs: `python scripts/make_pictures.py`, wherever the reports have changed their looks.

docs/images/terminal.svg is a session at a terminal of 100 columns. docs/images/comment.png is the comment that the action writes in
a pull request, at 780 pixels, as a GitHub-like page in Chromium. docs/images/trend.png and comparison.png are the tops of the two
pages. Needs gcc, Chromium, and fonts with emoji. With names, only these are made: session, comment, trend, comparison.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import termios
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
COLUMNS, PIXELS, PAGE_PIXELS = 100, 780, 1160

WORDS = """text = [f"word{i * 7919 % 503}" for i in range(3000)]
seen = set()
for word in text:
    if word not in seen:
        seen.add(word)
print(len(seen), "different words")
"""
SESSION = [
    "cat words.py",
    "cg-bench run -o before.json -- python3 words.py",
    "sed -i 's/set()/[]/; s/add/append/' words.py          # somebody thinks a list is simpler",
    "cg-bench run -q -o after.json -- python3 words.py",
    "cg-bench diff before.json after.json",
]

TEXT = r"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { SLOTS = 4096, WORDS = 20000 };
static char words[WORDS][8];
static const char *slots[SLOTS];
static unsigned hash(const char *word) { unsigned h = 5381; while (*word) h = h * 33 + (unsigned char)*word++; return h; }
static int same(const char *a, const char *b) { while (*a && *a == *b) a++, b++; return *a == *b; }
__attribute__((noinline)) const char **find_slot(const char *word) {
    unsigned at = %s;
    while (slots[at] && !same(slots[at], word)) at = (at + 1) %% SLOTS;
    return &slots[at];
}
static int by_text(const void *a, const void *b) { return strcmp(a, b); }
int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    unsigned long sum = 0;
    for (int i = 0; i < WORDS; i++) snprintf(words[i], 8, "w%%d", i * 7919 %% 1009);
    if (!strcmp(what, "count")) for (int i = 0; i < WORDS; i++) { const char **s = find_slot(words[i]); sum += !*s; *s = words[i]; }
    if (!strcmp(what, "sort")) qsort(words, WORDS, sizeof *words, by_text);
    if (!strcmp(what, "hash")) for (int i = 0; i < WORDS; i++) sum += hash(words[i]);
    if (!strcmp(what, "length")) for (int i = 0; i < WORDS; i++) sum += strlen(words[i]);
    printf("%%s: %%lu\n", what, sum);
}
"""
TABLE = """[[benchmark]]
id = "words-{0}"
command = ["./words", "{0}"]
setup = "cc -O2 -g -o words words.c"
"""

PAGE = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 12px; width: 756px; font: 14px/1.5 "Liberation Sans", Arial, sans-serif; color: #1f2328; background: #fff }
main { border: 1px solid #d1d9e0; border-radius: 6px; overflow: hidden } header { padding: 8px 16px; background: #f6f8fa;
border-bottom: 1px solid #d1d9e0; color: #59636e } header b { color: #1f2328 } article { padding: 16px }
h3 { margin: 0 0 16px; font-size: 17.5px; line-height: 1.25 } table { border-collapse: collapse; margin: 0 0 16px } p { margin: 0 0 12px }
td, th { padding: 6px 13px; border: 1px solid #d1d9e0 } details { margin: 0 0 12px } article > :last-child { margin: 0 }
code { font: 12px "DejaVu Sans Mono", monospace } a { color: #0969da; text-decoration: none }
blockquote { margin: 0 0 16px; padding: 0 1em; border-left: 4px solid #d1d9e0; color: #59636e } </style>
<main><header><b>github-actions</b> bot commented</header><article>%s</article></main>
<script>document.title = document.documentElement.scrollHeight</script>"""


# A program whose work is set by three numbers, and the commits that change these: the day of each, what it says, and the numbers.
STAGES = r"""#include <stdio.h>
#include <string.h>
#include "sizes.h"
int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    volatile int left = !strcmp(what, "parse[large]") ? PARSE : !strcmp(what, "render") ? RENDER : PACK;
    while (left > 0) left--;
    puts(what);
}
"""
STEPS = {
    0: ("Parse, render and pack", "parse", 200_000),
    11: ("Check every header twice", "parse", 206_000),
    26: ("Resolve links while rendering", "render", 262_500),
    36: ("Render tables without a copy", "render", 253_000),
    59: ("Accept comments in lists", "parse", 209_500),
}
DAYS, SLOWLY = 60, 20  # from that day on, each fourth commit makes packing a little dearer

COUNT = """import sys


def is_known(word, known):
    return word in known


def count(text):
    known = set()
    for word in text:
        if not is_known(word, known):
            known.add(word)
    return len(known)


print(count([f"word{i * 7919 % 503}" for i in range(1500)]), file=sys.stderr)
"""


def called(*words: str, cwd: Path, **variables: str) -> str:
    """Return what a command prints; it may end with a verdict, but not with an error."""
    environ = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"} | variables
    done = subprocess.run(words, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def typed(command: str, folder: Path) -> str:
    """Return what a terminal shows of a command once it has ended, but for progress, which is erased then."""
    master, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (50, COLUMNS))
    environ = {"PATH": f"{folder}:/usr/bin:/bin", "TERM": "xterm-256color", "HOME": str(folder)}
    streams: dict[str, Any] = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    with subprocess.Popen(["bash", "-c", command], cwd=folder, env=environ, **streams):
        os.close(terminal)
        shown = b""
        with suppress(OSError):  # that is how a terminal ends
            while chunk := os.read(master, 65536):
                shown += chunk
    os.close(master)
    return re.sub(r"^[^\n]*measuring under[^\n]*\n", "", shown.decode().replace("\r\n", "\n"), flags=re.MULTILINE)


def session(folder: Path) -> None:
    """Type the commands at a terminal, and draw what it shows."""
    (folder / "words.py").write_text(WORDS)
    (folder / "cg-bench").symlink_to(Path(sys.executable).parent / "cg-bench")
    console = Console(record=True, width=COLUMNS, force_terminal=True, file=open(os.devnull, "w"))  # noqa: SIM115
    for command in SESSION:
        console.print(Text("$ ", style="bold green"), Text(command, style="bold"), sep="", soft_wrap=True)
        console.print(Text.from_ansi(typed(command, folder)), soft_wrap=True)
    (IMAGES / "terminal.svg").write_text(re.sub(" +$", "", console.export_svg(title="cg-bench"), flags=re.MULTILINE))


def committed(folder: Path, message: str, date: str = "") -> str:
    """Commit all that is in the folder, and return the commit."""
    git = ["git", "-c", "user.name=Mira", "-c", "user.email=mira@example.org", "-c", "commit.gpgSign=false"]
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
    called(*git, "init", "--quiet", "--initial-branch=main", cwd=folder)
    called(*git, "add", ".", cwd=folder)
    called(*git, "commit", "--quiet", "--message", message, cwd=folder, **dates)
    return called("git", "rev-parse", "HEAD", cwd=folder).strip()


def drawn(page: Path, name: str, height: int) -> None:
    """Draw the top of a page of ours once its script is done."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": PAGE_PIXELS, "height": height})
        shown.goto(page.as_uri())
        shown.wait_for_timeout(1000)
        shown.screenshot(path=IMAGES / name)
        browser.close()


def trend(folder: Path) -> None:
    """Measure the commits of two months, and draw the report."""
    place = folder / "demo"
    place.mkdir()
    (place / "stages.c").write_text(STAGES)
    (place / ".gitignore").write_text("stages\n")
    table = '[[benchmark]]\nid = "{0}"\ncommand = ["./stages", "{0}"]\nsetup = "cc -O2 -g -o stages stages.c"\n'
    (place / "cg-bench.toml").write_text("".join(map(table.format, ("parse[large]", "render", "pack"))))
    sizes = {"parse": 200_000, "render": 250_000, "pack": 150_000}
    for day in range(DAYS):
        message, name, size = STEPS.get(day, (f"Tidy up ({day})", "pack", sizes["pack"]))
        sizes[name] = size + 150 * (name == "pack" and day >= SLOWLY and day % 4 == 0)
        (place / "sizes.h").write_text("".join(f"#define {key.upper()} {value}\n" for key, value in sizes.items()))
        (place / "NEWS").write_text(f"{day}\n")
        date = (datetime(2026, 7, 12, 9, tzinfo=UTC) + timedelta(days=day)).isoformat()
        committed(place, message, date)
        if day == DAYS - 20:
            called("git", "tag", "v1.4", cwd=place)
        called("cg-bench", "run", "-q", "--save", cwd=place)
    called("cg-bench", "trend", "--html", str(folder / "trend.html"), cwd=place)
    drawn(folder / "trend.html", "trend.png", 1180)


def comparison(folder: Path) -> None:
    """Compare two commits of a Python program, and draw the page."""
    (folder / ".gitignore").write_text("*.json\n*.html\n")
    python = next(filter(None, map(shutil.which, ("python3.13", "python3.12"))), None)
    if python is None:
        raise SystemExit("comparison.png needs Python 3.12 or 3.13, whose functions can be named")
    command = ("--id", "words", "--", python, "words.py")
    for name, text in (("base", COUNT), ("candidate", COUNT.replace("set()", "[]").replace(".add", ".append"))):
        (folder / "words.py").write_text(text)
        committed(folder, name)
        recorded = ("--call-tree", "--python-profile", "--python-optional")
        called("cg-bench", "run", "-q", *recorded, "-o", f"{name}.json", *command, cwd=folder)
    called("cg-bench", "diff", "base.json", "candidate.json", "--html", str(folder / "page.html"), cwd=folder)
    drawn(folder / "page.html", "comparison.png", 1420)


def comment(folder: Path) -> None:
    """Measure two commits as the action does in a pull request, and draw its report."""
    (folder / "cg-bench.toml").write_text("".join(map(TABLE.format, ("count", "hash", "length", "sort"))))
    shas = list[str]()
    for slot, message in (("hash(word) % SLOTS", "Words"), ("hash(word) % 2048", "Fewer slots")):
        (folder / "words.c").write_text(TEXT % slot)
        shas.append(committed(folder, message))
    base, head = shas
    pull: dict[str, Any] = {"number": 7, "head": {"sha": head, "repo": {"full_name": "mira/words"}}}
    payload = {"pull_request": pull | {"base": {"ref": "main", "sha": base}}, "repository": {"default_branch": "main"}}
    with tempfile.TemporaryDirectory() as other:
        place = Path(other)
        (place / "event.json").write_text(json.dumps(payload))
        (place / "artifact").mkdir()
        job = {
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_REPOSITORY": "mira/words",
            "GITHUB_SHA": head,
            "GITHUB_RUN_ID": "42",
        }
        job |= {"GITHUB_EVENT_PATH": str(place / "event.json"), "GITHUB_REF": "refs/pull/7/merge"}
        called("cg-bench", "ci", "measure", "--folder", other, "--base", base, cwd=folder, **job)
        called("cg-bench", "ci", "compare", "--folder", other, "--baseline", "ab", "--store", "none", cwd=folder, **job)
        shown = MarkdownIt("commonmark").enable("table").render((place / "report.md").read_text())
        page = place / "comment.html"
        page.write_text(PAGE % shown)
        chromium = [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={other}/c",
        ]
        found = re.search(
            "<title>([0-9]+)", called(*chromium, f"--window-size={PIXELS},100", "--dump-dom", page.as_uri(), cwd=place)
        )
        height = int(found[1]) if found else 600
        target = IMAGES / "comment.png"
        called(*chromium, f"--window-size={PIXELS},{height}", f"--screenshot={target}", page.as_uri(), cwd=place)


for draw in (session, comment, trend, comparison):
    if sys.argv[1:] and draw.__name__ not in sys.argv[1:]:
        continue
    with tempfile.TemporaryDirectory() as name:
        draw(Path(name))
