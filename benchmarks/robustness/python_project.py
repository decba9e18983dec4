"""A package of PyPI in a folder of its own, with a virtual environment that has cg-bench, pytest and its dependencies."""

from __future__ import annotations

import json
import os
import shutil
from email.parser import HeaderParser
from typing import TYPE_CHECKING, Any

from benchmarks.robustness import plant, python_rules
from benchmarks.robustness.edit import Source
from benchmarks.robustness.packages import SUITES
from benchmarks.robustness.project import CannotRunError, make_environment, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.robustness.edit import Edit
    from benchmarks.robustness.meters import Meter
    from benchmarks.robustness.packages import Package

PYTEST = "pytest==9.2.0"
FEWEST = 10  # rounds: with less a slowdown of a percent is anything but that
_TRIED, _GUESS = 2, 12  # percent that are planted to find out what a round costs there, and instructions it may cost


class PythonProject:
    """See `project.Project`."""

    rules = python_rules.RULES

    def __init__(self, package: Package, work: Path, meter: Meter) -> None:
        self.name = package.name
        self._package = package
        self._meter = meter
        self._home = work / package.name
        self._venv = self._home / "venv"
        self._original = self._home / "original"
        self._folder = self._home / "project"
        self._environ = {"PATH": os.environ["PATH"], "HOME": str(work), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self._digests: dict[str, str] = {}
        self._targets: dict[str, tuple[str, str, int]] = {}
        self._costs: dict[str, float] = {}
        self._added: tuple[str, ...] = ()
        self.source = Source(root=self._original, executed={})

    def prepare(self) -> None:
        """Install all that is missing, and probe it."""
        if not (self._home / "ready").exists():
            self._install()
        self._pip("uninstall", "-y", *(item.partition("==")[0] for item in python_rules.DEPENDENCIES))
        self._pip("install", python_rules.OLD)
        self.apply(None, {})
        found = self._probe()
        self._digests = {name: item["digest"] for name, item in found.items()}
        self._choose(found)

    def _install(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)
        self._home.mkdir(parents=True)
        make_environment(self._venv, PYTEST, *self._meter.requirements)
        package = self._package
        named = f"{package.name}=={package.version}"
        self._pip("install", "--no-deps", "--no-compile", f"--target={self._original}", named)
        for metadata in self._original.glob("*.dist-info/METADATA"):
            needs = HeaderParser().parsestr(metadata.read_text()).get_all("Requires-Dist") or []
            if needs := [item for item in needs if "extra ==" not in item]:
                self._pip("install", *needs)
        shutil.copy(package.bench, self._original)
        (self._home / "ready").touch()

    def _pip(self, *words: str | Path) -> None:
        run([self._venv / "bin/python", "-m", "pip", "-q", *words], cwd=self._home, environ=self._environ)

    def apply(self, edit: Edit | None, plants: Mapping[str, int]) -> None:
        """Copy the original, write the edited files, plant the loops, change the environment."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._original, self._folder)
        for name, text in edit.files.items() if edit else ():
            (self._folder / name).write_text(text)
        for benchmark, rounds in plants.items():
            name, qualname, _calls = self._targets[benchmark]
            path = self._folder / name
            path.write_text(plant.python_loop(path.read_text(), qualname, rounds))
        wanted = edit.requirements if edit else ()
        if wanted != self._added:
            if gone := [name for name in self._added if name != python_rules.NEW]:
                self._pip("uninstall", "-y", *(item.partition("==")[0] for item in gone))
            self._pip("install", *(wanted or [python_rules.OLD]))
            self._added = wanted

    def innocent(self) -> bool:
        """Run the benchmarks natively: nothing fails, and the results are the same."""
        try:
            return {name: item["digest"] for name, item in self._probe().items()} == self._digests
        except CannotRunError:
            return False

    def _probe(self) -> dict[str, Any]:
        noted = self._home / "probe.json"
        noted.unlink(missing_ok=True)
        environ = self._environ | {
            "PYTHONPATH": str(SUITES.parent),
            "ROBUSTNESS_PROBE": str(noted),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        without = [word for name in ("cg_bench", "codspeed", "cacheprovider") for word in ("-p", f"no:{name}")]
        command: list[str | Path] = [self._venv / "bin/python", "-m", "pytest", "-q", "-p", "probe", *without]
        run([*command, self._package.bench.name], cwd=self._folder, environ=environ)
        found: dict[str, Any] = json.loads(noted.read_text())
        return found

    def _choose(self, found: dict[str, Any]) -> None:
        """Find the executed files of the package, and for each benchmark the function that holds its loop:
        no other benchmark calls it, and this one calls it least often.
        """
        calls: dict[str, dict[tuple[str, str], int]] = {}
        for benchmark, item in found.items():
            counted = calls.setdefault(benchmark, {})
            for file, qualname, count, suspended in item["calls"]:
                inside = file.startswith(f"{self._folder}/") and not file.endswith(f"/{self._package.bench.name}")
                if inside and not suspended and "<" not in qualname.replace("<locals>", ""):
                    counted[file.removeprefix(f"{self._folder}/"), qualname] = count
        executed: dict[str, set[str]] = {}
        for name, qualname in (key for counted in calls.values() for key in counted):
            executed.setdefault(name, set()).add(qualname)
        self.source = Source(root=self._original, executed={name: frozenset(names) for name, names in executed.items()})
        texts = {name: self.source.text(name) for name in executed}
        for benchmark, counted in calls.items():
            others = {key for other, keys in calls.items() if other != benchmark for key in keys}
            alone = sorted((count, key) for key, count in counted.items() if key not in others)
            for count, (name, qualname) in alone:
                if plant.can_hold(texts[name], qualname):
                    self._targets[benchmark] = (name, qualname, count)
                    break

    def measure(self, output: Path) -> dict[str, int]:
        """Measure as a user would, at the defaults."""
        self._meter.suite(self._venv, self._folder, self._package.bench.name, self._environ, output)
        return self._meter.counts(output)

    def rounds(self, counts: Mapping[str, int], percent: int) -> dict[str, int]:
        """Return the rounds that each benchmark's loop needs."""
        if not self._costs:
            self._costs = self._calibrate(counts)
        found = {name: round(counts[name] * percent / 100 / cost) for name, cost in self._costs.items() if cost > 1}
        return {benchmark: rounds for benchmark, rounds in found.items() if rounds >= FEWEST}

    def _calibrate(self, counts: Mapping[str, int]) -> dict[str, float]:
        """Return the instructions that a round adds to each benchmark: in its place, all calls together."""
        guessed = {
            benchmark: max(FEWEST, round(counts[benchmark] * _TRIED / 100 / calls / _GUESS))
            for benchmark, (_name, _qualname, calls) in self._targets.items()
        }
        self.apply(None, guessed)
        after = self.measure(self._home / "calibration.json")
        return {benchmark: (after[benchmark] - counts[benchmark]) / tried for benchmark, tried in guessed.items()}

    def compare(self, base: Path, candidate: Path) -> list[dict[str, Any]]:
        """Say what changed, per benchmark."""
        return self._meter.compare(self._venv, base, candidate)
