"""Counts and times the programs of `programs`, and writes their points; goes on where it was ended.

Times are thread CPU time, pinned to one CPU, of the work alone: the least of four starts of several passes each. Counts are
those of one pass by `cg-bench run --estimate`.
"""

from __future__ import annotations

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.truth.cases import ROOT, Case, native, pythons

STARTS, BUDGET, MOST_PASSES, LIMIT = 4, 0.15, 100, 600
COUNTS = "Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw"
BRANCHES = "Bc", "Bcm", "Bi", "Bim"
COLUMNS = ("id", "fam", "var", "build", "kind", "units", "t", "tmed", "spread", *COUNTS, *BRANCHES, "n8")


def timed(case: Case) -> tuple[float, float, float]:
    """Return the least CPU seconds of a pass, the median of the starts, and how far the second start was from the least."""

    def started(passes: int) -> float:
        done = subprocess.run(case.command(passes), check=True, capture_output=True, text=True, timeout=LIMIT)
        return float(done.stdout.split()[-1]) * (case.units / 1e9 if case.kind == "sweep" else 1)

    first = started(3)
    passes = int(min(MOST_PASSES, max(3, BUDGET / max(first, 1e-9))))
    found = sorted([first, *(started(passes) for _ in range(STARTS - 1))])
    return found[0], statistics.median(found), found[1] / found[0] - 1


def counted(case: Case, folder: Path) -> dict[str, int]:
    """Return the counts of one pass, by the names of the columns."""
    result = folder / "result.json"
    words = [sys.executable, "-m", "cachegrind_bench", "run", "-q", "--warmup", "0", "--estimate", *case.counted]
    command = [*words, "-o", str(result), "--", *case.command(1)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    benchmarks = json.loads(result.read_text("utf-8"))["benchmarks"]
    found = next(item for item in benchmarks if item["id"].endswith("::work"))
    counts = {name: found["counts"][name] for name in COUNTS}
    last = sum(found["counts"][name] for name in ("ILmr", "DLmr", "DLmw"))
    return {**counts, **{name: found["branches"][name] for name in BRANCHES}, "n8": last}


def point(case: Case, folder: Path) -> dict[str, object]:
    """Measure one program."""
    least, median, spread = timed(case)
    about = {"id": case.name, "fam": case.family, "var": case.variant, "build": case.build, "kind": case.kind}
    times = {"units": case.units, "t": f"{least:.6g}", "tmed": f"{median:.6g}", "spread": f"{spread:.4f}"}
    return {**about, **times, **counted(case, folder)}


def measure(file: Path, work: Path, interpreters: Sequence[str], kinds: Sequence[str]) -> None:
    """Measure what the file lacks, and add a line for each."""
    work.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = str(ROOT)
    if not file.exists():
        file.write_text(",".join(COLUMNS) + "\n", "utf-8")
    with file.open(encoding="utf-8") as lines:
        known = {row["id"] for row in csv.DictReader(lines)}
    compiled = native(work.resolve()) if set(kinds) != {"python"} else ()
    cases = [*compiled, *(pythons(work.resolve(), interpreters) if interpreters else ())]
    wanted = [case for case in cases if case.name not in known and (not kinds or case.kind in kinds)]
    failed = 0
    for number, case in enumerate(wanted, 1):
        before = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as folder:
                row = point(case, Path(folder))
        except (subprocess.SubprocessError, OSError, ValueError, LookupError, StopIteration) as error:
            failed += 1
            said = str(getattr(error, "stderr", "") or error).strip().splitlines()
            print(f"{number} of {len(wanted)}: {case.name} is left out: {said[-1] if said else error!r}", flush=True)
            continue
        with file.open("a", encoding="utf-8", newline="") as lines:
            csv.DictWriter(lines, COLUMNS, lineterminator="\n").writerow(row)
        seconds = time.monotonic() - before
        print(f"{number} of {len(wanted)}: {case.name}, {row['Ir']:,} Ir in {row['t']} s ({seconds:.1f} s)", flush=True)
    print(f"{len(wanted) - failed} points were added to {file}, {failed} failed; to try these again, start again")
