"""A sample of the corpus of innocent edits (benchmarks/robustness), built and measured: quiet, until a slowdown is planted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.robustness import native_rules
from benchmarks.robustness.edit import Source, proposals
from benchmarks.robustness.meters import CgBench
from benchmarks.robustness.native_project import planted

VENV = Path(sys.executable).parent.parent
METER = CgBench("")
PROGRAM = """#include <stdio.h>
static unsigned mixed(const unsigned *values, unsigned number) {
    unsigned sum = 0, i;
    for (i = 0; i < number; i++) sum = sum * 31 + values[i % 64];
    return sum;
}

static void report(unsigned sum) {
    if (!sum) fprintf(stderr, "this sum can never be zero\\n");
    printf("%u\\n", sum);
}

int main(void) {
    unsigned values[64], i;
    for (i = 0; i < 64; i++) values[i] = i * 7919;
    report(mixed(values, 200000));
    return 0;
}
"""


def measured(folder: Path, text: str, name: str) -> Path:
    (folder / "main.c").write_text(text)
    subprocess.run(["gcc", "-O1", "-g", "main.c", "-o", "program"], cwd=folder, check=True)
    METER.program(VENV, folder, "sample", os.environ, folder / name)
    return folder / name


def test_innocent_edits_are_quiet_and_a_planted_percent_is_found(tmp_path: Path) -> None:
    base = measured(tmp_path, PROGRAM, "base.json")
    source = Source(root=tmp_path, executed={"main.c": frozenset()})
    edited = PROGRAM
    for rule in (native_rules.unused_function, native_rules.rename_local):
        edited = next(proposals(rule, source, "sample")).files["main.c"]
        assert edited != PROGRAM
        (row,) = METER.compare(VENV, base, measured(tmp_path, edited, "edited.json"))
        assert row["state"] == "unchanged", rule.__name__
        (tmp_path / "main.c").write_text(PROGRAM)
    trial = METER.counts(measured(tmp_path, planted(PROGRAM, "mixed", 10_000, rust=False), "trial.json"))["sample"]
    before = METER.counts(base)["sample"]
    rounds = round(before * 0.01 / (trial - before) * 10_000)
    (row,) = METER.compare(VENV, base, measured(tmp_path, planted(edited, "mixed", rounds, rust=False), "slower.json"))
    assert row["state"] == "regression"
    assert 9_000 < row["ir_ppm"] < 11_000
    assert row["blamed"]["function"] in {"main", "mixed"}  # it may be inlined
