"""The list of packages of PyPI that the rules are applied to, each with a file of benchmarks in `suites/`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SUITES = Path(__file__).resolve().parent / "suites"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A distribution and its benchmarks: any file of pytest benchmarks does."""

    name: str
    version: str
    bench: Path


def _package(name: str, version: str) -> Package:
    return Package(name=name, version=version, bench=SUITES / f"bench_{name}.py")


PACKAGES = (
    _package("tomlkit", "0.13.2"),
    _package("mistune", "3.1.3"),
    _package("html5lib", "1.1"),
    _package("pyparsing", "3.2.3"),
    _package("jinja2", "3.1.6"),
    _package("lark", "1.2.2"),
    _package("tinycss2", "1.4.0"),
    _package("pygments", "2.19.1"),
)
