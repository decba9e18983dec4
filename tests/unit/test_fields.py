"""Values that are copied by the names of their fields: none is lost on the way."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any

import click

import cachegrind_bench.cli
from cachegrind_bench import usecases
from cachegrind_bench.cli.main import cli
from cachegrind_bench.config.benchmarks import BenchmarkSpec
from cachegrind_bench.usecases import suite
from cachegrind_bench.usecases.measurement import MeasureRequest
from cachegrind_bench.valgrind.options import Geometry

if TYPE_CHECKING:
    from collections.abc import Iterator

    import msgspec
    import pytest

ELSEWHERE = {"code_quality", "estimate"}  # used by `_FILES` and by Geometry.chosen
# What a benchmark's table says and its request has, too, as another value.
OTHER = {"env", "stdin", "cwd"}


def structs() -> Iterator[type[msgspec.Struct]]:
    """Yield what options become fields of."""
    for module in walk_packages(usecases.__path__, f"{usecases.__name__}."):
        for name, value in vars(import_module(module.name)).items():
            if name.endswith(("Request", "Options", "Query")):
                yield value


def names_used(node: ast.AST) -> Iterator[str]:
    """Yield texts and names of parameters, but not those that declare an option."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in {"click.option", "click.argument"}:
        return
    if isinstance(node, ast.Constant):
        yield str(node.value)
    if isinstance(node, ast.arg):
        yield node.arg
    for child in ast.iter_child_nodes(node):
        yield from names_used(child)


def parameters(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.params:
        if parameter.expose_value:
            yield parameter.name or ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from parameters(below, context)


def test_each_option_is_used_or_a_field_of_what_is_asked_for() -> None:
    fields = {field for kind in structs() for field in kind.__struct_fields__}
    sources = Path(cachegrind_bench.cli.__path__[0]).glob("*.py")
    used = {name for source in sources for name in names_used(ast.parse(source.read_text()))}
    assert {*parameters(cli, click.Context(cli))} - fields - used == ELSEWHERE


def test_what_a_benchmarks_table_says_is_what_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(suite, "plan_of", lambda asked: asked)
    said: dict[str, Any] = {
        "id": "a",
        "command": ("true",),
        "repeat": 2,
        "warmup": 3,
        "layouts": 4,
        "timeout_ms": 5,
        "prepare": "prepare",
        "cleanup": "cleanup",
        "call_tree": True,
        "python_profile": True,
    }
    assert {*BenchmarkSpec.__struct_fields__} & {*MeasureRequest.__struct_fields__} == {*said} | OTHER
    each = MeasureRequest(command=(), cwd=tmp_path, environ={}, now=datetime.now(UTC), geometry=Geometry())
    spec = BenchmarkSpec(**said, cwd=tmp_path / "own", env=("A=1",), stdin=tmp_path / "in", parameters={}, place="")
    asked: Any = suite._plan(suite.SuiteRequest(each=each, typed=frozenset()), spec)
    assert said == {name: getattr(asked, name) for name in said}
    assert (asked.cwd, asked.env, asked.stdin) == (spec.cwd, spec.env, str(spec.stdin))
