"""Reads the options, measures what the journal lacks, and prints the table."""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.robustness.meters import BareCallgrind, CgBench
from benchmarks.robustness.native_project import NativeProject
from benchmarks.robustness.packages import PACKAGES, Package
from benchmarks.robustness.programs import PROGRAMS
from benchmarks.robustness.python_project import PythonProject
from benchmarks.robustness.runner import PLANTED, Journal, Runner
from benchmarks.robustness.table import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.robustness.project import Project


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.robustness", description=__doc__)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--work", type=Path, default=Path("robustness-work"), help="folder for downloads and results")
    parser.add_argument("--cg-bench", default=str(root), help="what pip installs: a checkout, or another version")
    parser.add_argument("--bare", action="store_true", help="measure instructions by bare Callgrind, not by cg-bench")
    parser.add_argument("--label", default="after", help="column of the table that the measurements belong to")
    parser.add_argument("--package", help="NAME==VERSION of another package, with --bench")
    parser.add_argument("--bench", type=Path, help="its file of pytest benchmarks")
    parser.add_argument("--only", action="append", help="only these projects")
    parser.add_argument("--rule", action="append", default=[], help="only edits by these rules")
    parser.add_argument("--jobs", type=int, default=1, help="projects measured at a time")
    parser.add_argument("--limit", type=int, help="edits per project")
    parser.add_argument("--planted", type=int, nargs="*", default=list(PLANTED), help="planted slowdowns in percent")
    parser.add_argument(
        "--table", action="store_true", help="print the table of what was measured, and measure nothing"
    )
    return parser.parse_args()


def _measure(runner: Runner, projects: Sequence[Project], jobs: int) -> None:
    whole = sum(len(runner.missing(project)) for project in projects)
    start = time.monotonic()

    def work(project: Project) -> None:
        for line in runner.measure(project):
            left = sum(len(runner.missing(other)) for other in projects)
            past = time.monotonic() - start
            estimate = f", about {past / (whole - left) * left / 60:.0f} min left" if left < whole else ""
            print(f"{whole - left} of {whole}{estimate}: {line}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, projects))


def main() -> None:
    """Measure, and print the table."""
    options = _arguments()
    work: Path = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    journal = Journal(work / "results.jsonl")
    if not options.table:
        folder = work / options.label
        meter = BareCallgrind() if options.bare else CgBench(options.cg_bench)
        packages: tuple[Package, ...] = PACKAGES
        if options.package:
            name, _, version = options.package.partition("==")
            packages = (Package(name=name, version=version, bench=options.bench.resolve()),)
        projects: list[Project] = [PythonProject(package, folder, meter) for package in packages]
        if not options.package:
            projects += [NativeProject(program, folder, meter) for program in PROGRAMS]
        runner = Runner(
            journal=journal,
            label=options.label,
            work=work,
            planted=tuple(options.planted),
            limit=options.limit,
            rules=options.rule,
        )
        _measure(runner, [item for item in projects if not options.only or item.name in options.only], options.jobs)
    print(table(journal.rows))


if __name__ == "__main__":
    main()
