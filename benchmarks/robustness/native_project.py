"""A C, C++ or Rust program: its sources from crates.io by `cargo vendor`, a driver of ours, and one call of the compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING, Any

from benchmarks.robustness import native_rules
from benchmarks.robustness.edit import Source
from benchmarks.robustness.native_text import functions
from benchmarks.robustness.programs import DRIVERS
from benchmarks.robustness.project import CannotRunError, make_environment, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.robustness.edit import Edit
    from benchmarks.robustness.meters import Meter
    from benchmarks.robustness.programs import Program

_MANIFEST = """[package]
name = "sources"
version = "0.1.0"
edition = "2021"
[dependencies]
{} = "={}"
[lib]
path = "lib.rs"
"""
_STUBS = "snappy-stubs-public.h"  # made by its configuration from a template: what CMake would write on Linux
_TRIAL = 10_000


class NativeProject:
    """See `project.Project`."""

    rules = native_rules.RULES

    def __init__(self, program: Program, work: Path, meter: Meter) -> None:
        self.name = program.name
        self._program = program
        self._main = f"main.{program.driver.rpartition('.')[2]}"
        self._meter = meter
        self._home = work / program.name
        self._venv = self._home / "venv"
        self._original = self._home / "original"
        self._folder = self._home / "project"
        self._environ = dict(os.environ)
        self._digest = ""
        self._each = 0.0
        self.source = Source(root=self._original, executed={})

    def prepare(self) -> None:
        """Fetch the sources if they are missing, build them, and keep what the program prints."""
        if not (self._home / "ready").exists():
            self._fetch()
        rust = self._main.endswith(".rs")
        modules = [str(path.relative_to(self._original)) for path in sorted(self._original.glob("src/**/*.rs"))]
        names = [self._main, *(modules if rust else self._program.compiled)]
        texts = {name: (self._original / name).read_text() for name in names}
        executed = {name: frozenset(item.name for item in functions(text, rust=rust)) for name, text in texts.items()}
        self.source = Source(root=self._original, executed=executed)
        self.apply(None, {})
        self._digest = self._printed()

    def _fetch(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)
        vendor = self._home / "vendor"
        vendor.mkdir(parents=True)
        (vendor / "Cargo.toml").write_text(_MANIFEST.format(self._program.crate, self._program.version))
        (vendor / "lib.rs").touch()
        run(["cargo", "vendor", "--quiet", "sources"], cwd=vendor, environ=self._environ)
        shutil.copytree(vendor / "sources" / self._program.crate / self._program.folder, self._original)
        shutil.copy(DRIVERS / self._program.driver, self._original / self._main)
        template = self._original / f"{_STUBS}.in"
        if template.exists():
            text = template.read_text()
            for name, value in {"cmakedefine01": "define", "${HAVE_SYS_UIO_H_01}": "1"}.items():
                text = text.replace(name, value)
            for number, part in enumerate(("MAJOR", "MINOR", "PATCH")):
                text = text.replace(f"${{PROJECT_VERSION_{part}}}", str(number))
            (self._original / _STUBS).write_text(text)
        make_environment(self._venv, *self._meter.requirements)
        (self._home / "ready").touch()

    def apply(self, edit: Edit | None, plants: Mapping[str, int]) -> None:
        """Copy the original, write the edited files, plant the loop, and build."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._original, self._folder)
        for name, text in edit.files.items() if edit else ():
            (self._folder / name).write_text(text)
        for rounds in plants.values():
            name, function = self._program.plant
            path = self._folder / name
            path.write_text(planted(path.read_text(), function, rounds, rust=native_rules.is_rust(name)))
        self._build(edit)

    def _build(self, edit: Edit | None) -> None:
        program = self._program
        library = ("-Wl,--no-as-needed", program.library) if edit and edit.requirements else ()
        if self._main.endswith(".rs"):
            common = [
                "rustc",
                "--edition=2021",
                "-Copt-level=3",
                "-Ccodegen-units=1",
                "-Cdebuginfo=1",
                "--cap-lints=allow",
            ]
            crate = program.crate.replace("-", "_")
            make = [*common, *program.flags, f"--crate-name={crate}", "--crate-type=rlib", *program.compiled]
            run(make, cwd=self._folder, environ=self._environ)
            link = [f"-Clink-arg={word}" for word in library]
            make = [*common, f"--extern={crate}=lib{crate}.rlib", *link, self._main, "-o", "program"]
            run(make, cwd=self._folder, environ=self._environ)
            return
        compiler = "gcc" if self._main.endswith(".c") else "g++"
        sources = [self._main, *program.compiled, *(edit.link if edit else ())]
        for name in sources:
            make = [compiler, "-O2", "-g", "-I.", "-w", *program.flags, "-c", name, "-o", f"{name}.o"]
            run(make, cwd=self._folder, environ=self._environ)
        objects = [f"{name}.o" for name in sources]
        if edit and edit.reversed_objects:
            objects.reverse()
        run([compiler, *objects, *library, "-o", "program"], cwd=self._folder, environ=self._environ)

    def _printed(self) -> str:
        return hashlib.sha256(run(["./program"], cwd=self._folder, environ=self._environ).encode()).hexdigest()

    def innocent(self) -> bool:
        """Tell whether the program prints what the original does."""
        try:
            return self._printed() == self._digest
        except CannotRunError:
            return False

    def measure(self, output: Path) -> dict[str, int]:
        """Measure as a user would, at the defaults."""
        self._meter.program(self._venv, self._folder, self.name, self._environ, output)
        return self._meter.counts(output)

    def rounds(self, counts: Mapping[str, int], percent: int) -> dict[str, int]:
        """Return the rounds that the loop needs, from a trial with many."""
        if not self._each:
            self.apply(None, {self.name: _TRIAL})
            trial = self.measure(self._home / "trial.json")
            self._each = (trial[self.name] - counts[self.name]) / _TRIAL
        return {self.name: max(round(counts[self.name] * percent / 100 / self._each), 1)}

    def compare(self, base: Path, candidate: Path) -> list[dict[str, Any]]:
        """Say what changed, per benchmark."""
        return self._meter.compare(self._venv, base, candidate)


def planted(text: str, name: str, rounds: int, *, rust: bool) -> str:
    """Put an empty loop that no compiler removes at the start of the first function of this name."""
    function = next(item for item in functions(text, rust=rust) if item.name == name)
    loop = (
        f"\n    for i in 0..{rounds}u32 {{ core::hint::black_box(i); }}\n"
        if rust
        else f"\n    {{ volatile unsigned planted; for (planted = 0; planted < {rounds}u; planted++) {{}} }}\n"
    )
    return text[: function.body] + loop + text[function.body :]
