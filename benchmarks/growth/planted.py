"""Whether a quadratic function is found while it costs next to nothing: python -m benchmarks.growth.planted [C|Python]...

A program of ten functions, each two percent of its cost and linear, is compared with ten others, in each of which one of these
got a quadratic part of less than half a percent at the largest size; and with ten that were changed harmlessly. Prints a table in
Markdown, and exits with 1 if a quadratic one is not found and named, or anything is reported of a harmless one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = [sys.executable, "-m", "cachegrind_bench"]
PARTS = 10


class Edit(NamedTuple):
    """What is different: in which part (None: in the main program), by these lines, or by another number of rounds."""

    title: str
    part: int | None = None
    lines: str = ""
    rounds: int | None = None
    main: str = ""


def _changes(edit: Edit | None, part: int, rounds: int) -> tuple[int, str]:
    """Return how many rounds the loop of a part has, and the lines that are planted in it."""
    if edit is None or edit.part != part:
        return rounds, ""
    return edit.rounds or rounds, edit.lines


def c_program(edit: Edit | None) -> str:
    """Return the program in C with this edit."""
    text = "#include <stdio.h>\n#include <stdlib.h>\n"
    for part in range(PARTS):
        rounds, lines = _changes(edit, part, 120)
        text += (
            f"__attribute__((noinline)) static long part_{part}(int n) {{\n    long sum = 0;\n"
            f"    for (int i = 0; i < n; i++) {{\n        for (volatile int k = 0; k < {rounds}; k++) sum += i ^ k;\n"
            f"        {lines}\n    }}\n    return sum;\n}}\n"
        )
    calls = " + ".join(f"part_{part}(n)" for part in range(PARTS))
    main = edit.main if edit is not None else ""
    return text + (
        "__attribute__((noinline)) static long work(int n) {\n    long sum = 0;\n"
        "    for (int i = 0; i < n; i++)\n        for (volatile int k = 0; k < 4800; k++) sum += i ^ k;\n    return sum;\n}\n"
        f"int main(int c, char **v) {{\n    int n = atoi(v[c - 1]);\n    {main}\n"
        f'    printf("%ld\\n", work(n) + {calls});\n}}\n'
    )


def python_program(edit: Edit | None) -> str:
    """Return the module in Python with this edit, of which `run` is the main program."""
    text = ""
    for part in range(PARTS):
        rounds, lines = _changes(edit, part, 6)
        text += (
            f"def part_{part}(text):\n    count = 1000\n    for letter in text:\n        for _ in range({rounds}):\n"
            f"            count += 1\n{lines}    return count\n\n\n"
        )
    main = edit.main if edit is not None else ""
    return text + (
        "def work(text):\n    count = 1000\n    for letter in text:\n        for _ in range(180):\n"
        "            count += 1\n    return count\n\n\n"
        f"def run(size):\n    text = 'xyz' * (size // 3)\n{main}"
        f"    print(work(text), {', '.join(f'part_{part}(text)' for part in range(PARTS))})\n"
    )


C_QUADRATIC = [
    Edit("a search from the start", part, f"for (int j = 0; j < i; j += {step}) sum += j;")
    for part, step in enumerate([4, 4, 5, 5, 6, 6, 7, 7, 8, 8])
]
PYTHON_QUADRATIC = [
    *(
        Edit("the rest is cut off", part, "    row = list(text[::4])\n    while row:\n        row = row[1:]\n")
        for part in range(5)
    ),
    *(
        Edit("the first are removed", part, "    row = list(text * 2)\n    for _ in text[::3]:\n        row.pop(0)\n")
        for part in range(5, 10)
    ),
]
C_HARMLESS = [
    *(
        Edit(f"{rounds} rounds instead of 120", part, rounds=rounds)
        for part, rounds in ((0, 100), (1, 121), (2, 140), (3, 119))
    ),
    *(Edit("one operation more", part, "sum ^= i;") for part in (4, 5)),
    *(Edit("a fixed loop at the start", main=f"for (volatile int k = 0; k < {most}; k++);") for most in (100, 5000)),
    Edit("a branch more", 6, "if (i % 3 == 0) sum += 7;"),
    Edit("a linear loop in the main program", main="for (volatile int k = 0; k < n; k++);"),
]
PYTHON_HARMLESS = [
    *(Edit(f"{rounds} rounds instead of 6", part, rounds=rounds) for part, rounds in ((0, 5), (1, 7), (2, 5), (3, 7))),
    *(Edit("another linear pass", part, "    count += len(text.replace('x', 'y'))\n") for part in (4, 5)),
    *(Edit("a fixed loop at the start", main=f"    for _ in range({most}):\n        pass\n") for most in (100, 300)),
    Edit("a copy as a list", 6, "    count += len(list(text))\n"),
    Edit("a sum in the main program", main="    sum(letter == 'x' for letter in text)\n"),
]


class Language(NamedTuple):
    """How programs of a language are written, built and measured."""

    name: str
    program: Callable[[Edit | None], str]
    quadratic: list[Edit]
    harmless: list[Edit]
    options: tuple[str, ...]

    def measured(self, edit: Edit | None, folder: Path, output: str) -> None:
        """Measure the program with this edit, in a file of the folder."""
        source = folder / f"program.{'c' if self.name == 'C' else 'py'}"
        source.write_text(self.program(edit))
        if self.name == "Python":  # in a module: what is run is compiled every time
            (folder / "main.py").write_text("import sys\n\nimport program\n\nprogram.run(int(sys.argv[1]))\n")
            command = [sys.executable, "-S", "main.py"]
        else:
            subprocess.run(["gcc", "-g", "-O1", source.name, "-o", "program"], cwd=folder, check=True)
            command = ["./program"]
        words = ["growth", "-q", *self.options, "-o", output, "--id", "program", "--", *command, "{size}"]
        subprocess.run([*COMMAND, *words], cwd=folder, check=True)


LANGUAGES = [
    Language("C", c_program, C_QUADRATIC, C_HARMLESS, ("--sizes", "32..512x2")),
    Language("Python", python_program, PYTHON_QUADRATIC, PYTHON_HARMLESS, ("--sizes", "48..768x2", "--python-profile")),
]


def compared(folder: Path) -> tuple[dict[str, Any], float]:
    """Return what is said of the growth, and by how many percent the score moved most."""
    done = subprocess.run(
        [*COMMAND, "diff", "base.json", "new.json", "--format", "json", "--explain", "0"],
        cwd=folder, check=False, capture_output=True, text=True,
    )  # fmt: skip
    found = json.loads(done.stdout)["benchmarks"]
    moved = [abs(item["change_ppm"]["score"]) / 10_000 for item in found if item["change_ppm"]]
    return next(item for item in found if item["growth"]), max(moved)


def main(names: list[str]) -> int:
    """Print the table, and return the exit code."""
    wrong = 0
    print("| program | edit | score, at most | growth | named |")
    print("| --- | --- | --: | --- | --- |")
    for language in LANGUAGES:
        if names and language.name not in names:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            language.measured(None, folder, "base.json")
            for edit in (*language.quadratic, *language.harmless):
                language.measured(edit, folder, "new.json")
                item, moved = compared(folder)
                growth = item["growth"]
                worst = [one for one in growth["candidate"]["functions"] if one["growth"] == "n²"]
                named = worst[0]["function"] if worst else ""
                is_found = item["state"] == "regression" and named == f"part_{edit.part}"
                is_right = is_found if edit in language.quadratic else item["state"] == "unchanged"
                wrong += not is_right
                said = f"{growth['base']['growth']} → {growth['candidate']['growth']}"
                print(
                    f"| {language.name} | {edit.title} | {moved:.2f} % | {said}{'' if is_right else ' **wrong**'} | {named} |",
                    flush=True,
                )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
