"""What measures, and what it says of two measurements: cg-bench at its defaults, or instructions of bare Callgrind."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks.robustness.project import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

THRESHOLD_PPM = 5000
_TOTAL = re.compile(r"^desc: Trigger: Client Request: (.*::.*)\n(?:.*\n)*?totals: (\d+)", re.MULTILINE)


class Meter(Protocol):
    """Measures in a virtual environment that has its requirements, in a folder; all results are files."""

    @property
    def requirements(self) -> tuple[str, ...]:
        """What pip installs for it."""
        ...

    def suite(self, venv: Path, folder: Path, bench: str, environ: Mapping[str, str], output: Path) -> None:
        """Measure a file of pytest benchmarks."""
        ...

    def program(self, venv: Path, folder: Path, name: str, environ: Mapping[str, str], output: Path) -> None:
        """Measure ./program."""
        ...

    def counts(self, output: Path) -> dict[str, int]:
        """Read Ir of each benchmark."""
        ...

    def compare(self, venv: Path, base: Path, candidate: Path) -> list[dict[str, Any]]:
        """Say what changed, per benchmark."""
        ...


@dataclass(frozen=True, slots=True)
class CgBench:
    """The commands as a user types them, with no option that changes what is measured or what is an alarm."""

    requirement: str

    @property
    def requirements(self) -> tuple[str, ...]:
        """A checkout, or a released version."""
        return (self.requirement,)

    def suite(self, venv: Path, folder: Path, bench: str, environ: Mapping[str, str], output: Path) -> None:
        """Call pytest."""
        command: list[str | Path] = [
            venv / "bin/python",
            "-m",
            "pytest",
            "-q",
            bench,
            "--cg-bench",
            "--cg-bench-jobs=1",
            f"--cg-bench-output={output}",
        ]
        run(command, cwd=folder, environ=environ)

    def program(self, venv: Path, folder: Path, name: str, environ: Mapping[str, str], output: Path) -> None:
        """Call cg-bench run."""
        command: list[str | Path] = [
            venv / "bin/cg-bench",
            "run",
            "--quiet",
            "--id",
            name,
            "-o",
            output,
            "--",
            "./program",
        ]
        run(command, cwd=folder, environ=environ)

    def counts(self, output: Path) -> dict[str, int]:
        """Read the result file."""
        return {item["id"]: item["counts"]["Ir"] for item in json.loads(output.read_text())["benchmarks"]}

    def compare(self, venv: Path, base: Path, candidate: Path) -> list[dict[str, Any]]:
        """Call cg-bench diff."""
        report = candidate.with_suffix(".diff.json")
        report.unlink(missing_ok=True)
        command: list[str | Path] = [venv / "bin/cg-bench", "diff", base, candidate, "--json", report]
        run(command, cwd=base.parent, environ={}, codes=(0, 1, 3, 4))
        told = json.loads(report.read_text())
        return [
            {
                "benchmark": item["id"],
                "state": item["state"],
                "score_ppm": (item["change_ppm"] or {}).get("score", 0),
                "ir_ppm": (item["change_ppm"] or {}).get("Ir", 0),
                "blamed": item["blamed"],
                "headline": told["headline"],
            }
            for item in told["benchmarks"]
        ]


@dataclass(frozen=True, slots=True)
class BareCallgrind:
    """pytest-codspeed under an ordinary Callgrind, and whole programs under it: Ir decides, by the same threshold.

    No seal but what is usual: no ASLR, a fixed hash seed and the allocator of libc.
    """

    requirement: str = "pytest-codspeed==5.0.4"

    @property
    def requirements(self) -> tuple[str, ...]:
        """The plugin that marks the benchmarks."""
        return (self.requirement,)

    def suite(self, venv: Path, folder: Path, bench: str, environ: Mapping[str, str], output: Path) -> None:
        """Let the plugin mark where each benchmark begins and ends, and read what Callgrind counted there."""
        more = {"CODSPEED_ENV": "1", "PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc"}
        command: list[str | Path] = [venv / "bin/python", "-m", "pytest", "-q", "--codspeed", bench]
        text = _callgrind(command, folder, dict(environ) | more, output, "--instr-atstart=no")
        counts = {name.removeprefix(f"{folder}/"): int(total) for name, total in _TOTAL.findall(text)}
        output.write_text(json.dumps(counts))

    def program(self, venv: Path, folder: Path, name: str, environ: Mapping[str, str], output: Path) -> None:
        """Count the whole program."""
        del venv
        text = _callgrind(["./program"], folder, environ, output)
        output.write_text(json.dumps({name: int(text.rpartition("totals: ")[2].split()[0])}))

    def counts(self, output: Path) -> dict[str, int]:
        """Read what was written above."""
        counts: dict[str, int] = json.loads(output.read_text())
        return counts

    def compare(self, venv: Path, base: Path, candidate: Path) -> list[dict[str, Any]]:
        """Compare Ir."""
        del venv
        before, after = self.counts(base), self.counts(candidate)
        told: list[dict[str, Any]] = []
        for name, count in sorted(before.items()):
            ppm = round((after[name] - count) / count * 1_000_000)
            state = "unchanged" if abs(ppm) <= THRESHOLD_PPM else "regression" if ppm > 0 else "improvement"
            told.append({"benchmark": name, "state": state, "score_ppm": ppm, "ir_ppm": ppm, "blamed": None})
        return told


def _callgrind(command: list[str | Path], folder: Path, environ: Mapping[str, str], output: Path, *more: str) -> str:
    file = output.with_suffix(".out")
    valgrind = ["setarch", "x86_64", "-R", "valgrind", "--tool=callgrind", "--combine-dumps=yes", *more]
    run([*valgrind, f"--callgrind-out-file={file}", *command], cwd=folder, environ=environ)
    text = file.read_text(errors="replace")
    file.unlink()
    return text
