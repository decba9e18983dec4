"""Whatever a configuration holds: places are found for every key, and mistakes are told, never a traceback."""

from __future__ import annotations

import json
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import example, given
from hypothesis import strategies as st

from cachegrind_bench.config.load import load
from cachegrind_bench.config.schema import BENCHMARK, DEFAULTS
from cachegrind_bench.config.toml_lines import Steps, places
from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import Configuration

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\"'\\#[]{}=,.\n\t {n}"), max_size=8)
scalars = st.integers(-5, 5) | st.booleans() | texts | st.floats(-10, 10)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
tables = st.dictionaries(texts, values, max_size=5)
names = st.sampled_from([key.name for key in (*DEFAULTS.values(), *BENCHMARK.values())])
likely = scalars | st.lists(texts, max_size=3) | st.sampled_from(["1%", "Ir=5", "x {n}", [{"n": 1}], {"n": [1, 2]}])
benchmark = st.dictionaries(names, likely, max_size=4).map(lambda table: {"id": "a", "command": "x", **table})


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@st.composite
def toml(draw: st.DrawFn, value: Any) -> str:
    """Return this value in one of the ways to write it."""
    if isinstance(value, str):
        forms = [quoted(value)]
        if "'" not in value and "\n" not in value:
            forms.append(f"'{value}'")
        if "'''" not in value and not value.endswith("'"):
            forms.append(f"'''\n{value}'''")
        return draw(st.sampled_from(forms))
    if isinstance(value, list):
        space = draw(st.sampled_from(["", " ", "\n", " # ] , \n"]))
        return "[" + "".join(f"{space}{draw(toml(item))}{space}," for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)} = {draw(toml(item))}" for key, item in value.items()) + "}"
    return json.dumps(value)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Return a text with pairs, tables and arrays of tables."""
    lines = [f"{quoted(key)} = {draw(toml(value))}" for key, value in draw(tables).items()]
    for number, table in enumerate(draw(st.lists(tables, max_size=3))):
        header = draw(st.sampled_from([f"[t{number}]", f'["t.{number}" . x]', "[[many]]", f"[[deep{number}.\t'in']]"]))
        lines += [header, *(f"{quoted(key)} = {draw(toml(value))}" for key, value in table.items())]
    return "\n".join(lines)


def all_steps(value: Any, before: Steps = ()) -> set[Steps]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: set[Steps] = {before} if before else set()
    for key, inner in pairs:
        found |= all_steps(inner, (*before, key))
    return found


def loaded(path: Path) -> Configuration | str:
    """Return what the file says, or what is told about it."""
    try:
        return load(path, check_files=False)
    except UsageError as error:
        return error.message


@given(documents())
def test_every_key_table_and_element_has_a_place_and_nothing_else_has(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # a name came twice
        return
    found = places(text)
    assert found.keys() == all_steps(data)
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())


@given(st.dictionaries(names, likely, max_size=4), st.lists(benchmark, max_size=3), st.data())
@example({}, [{"id": "a", "command": "x"}], None)
def test_any_configuration_is_loaded_or_refused_with_the_line(
    defaults: dict[str, Any], benchmarks: list[dict[str, Any]], data: st.DataObject | None
) -> None:
    def pairs(table: dict[str, Any]) -> list[str]:
        return [f"{key} = {json.dumps(item) if data is None else data.draw(toml(item))}" for key, item in table.items()]

    lines = pairs({key: item for key, item in defaults.items() if key != "benchmark"})
    for table in benchmarks:
        lines += ["[[benchmark]]", *pairs(table)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cg-bench.toml"
        path.write_text("\n".join(lines), encoding="utf-8")
        found = loaded(path)
        if isinstance(found, str):
            assert f"{path.name}:" in found
        else:
            assert len({spec.id for spec in found.benchmarks}) == len(found.benchmarks) >= len(benchmarks)


@given(st.binary(max_size=60) | documents().map(str.encode))
def test_any_bytes_are_loaded_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cg-bench.toml", "pyproject.toml"):
            path = Path(folder) / name
            path.write_bytes(content)
            found = loaded(path)
            assert not isinstance(found, str) or name in found
