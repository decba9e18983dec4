"""Write the JSON Schemas of the configuration, of result files and of reports, and the tables of their fields in docs.

`python scripts/generate_schema.py`, or `--check` to compare only.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cachegrind_bench.config.schema import BENCHMARK, DEFAULTS, HARNESSES, Combinations, Defaults, Key, Parameters  # noqa: E402 - the checkout, wherever this is started
from cachegrind_bench.model import codec  # noqa: E402
from cachegrind_bench.model.described import DIFFERENCE, UNIT  # noqa: E402
from cachegrind_bench.model.metrics import Counts  # noqa: E402
from cachegrind_bench.model.symbols import Symbol  # noqa: E402
from cachegrind_bench.render.documents.checks import DoctorReport, VerifyReport  # noqa: E402
from cachegrind_bench.render.documents.comparisons import DiffReport  # noqa: E402
from cachegrind_bench.render.documents.lists import BaselineList, BenchmarkList, ProblemList, RunList  # noqa: E402
from cachegrind_bench.render.documents.summaries import Summary  # noqa: E402
from cachegrind_bench.render.documents.trends import TrendReport  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCHEMA = ROOT / "schema" / "cg-bench.schema.json"
RESULT_SCHEMA = ROOT / "schema" / "cg-bench.run.schema.json"
PAGE = ROOT / "docs" / "configuration.md"
REPORTS: tuple[type[msgspec.Struct], ...] = (
    *(DiffReport, Summary, TrendReport, BenchmarkList, DoctorReport),
    *(VerifyReport, RunList, ProblemList, BaselineList),
)
REPORT_PAGE = ROOT / "docs" / "json.md"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SHORT = "Counts"  # once in a table of its own
_BEGIN, _END = "<!-- reference: made by scripts/generate_schema.py -->", "<!-- end of reference -->"


def _components(struct: type[msgspec.Struct], place: str = "$defs") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a struct and those it refers to; docstrings without indentation, as CPython has them since 3.13."""
    (root,), found = msgspec.json.schema_components(
        [struct],
        ref_template=f"#/{place}/{{name}}",
        schema_hook=lambda kind: {"type": "string" if kind is Symbol else "integer"},  # a share, in parts per million
    )
    for described in found.values():
        if "description" in described:
            described["description"] = inspect.cleandoc(described["description"])
    return root, found


def schema() -> str:
    """Return the JSON Schema of cg-bench.toml, and so of the table [tool.cg-bench]; draft 7, as editors know it."""
    _, found = _components(Defaults, "definitions")
    tables = {"Defaults": DEFAULTS, "Benchmark": BENCHMARK}
    for table, keys in tables.items():
        for name, described in found[table]["properties"].items():
            described.update(_described(keys[name]))
        if not found[table]["required"]:
            del found[table]["required"]  # empty, which the drafts before 6 forbid
    own = {"required": [key.name for key in BENCHMARK.values() if key.required]}
    found["Benchmark"]["anyOf"] = [own, *({"required": [name]} for name in HARNESSES)]
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **found["Defaults"],
        "title": "Configuration of cg-bench",
        "description": "cg-bench.toml, or the table [tool.cg-bench] of pyproject.toml",
        "definitions": {"Benchmark": found["Benchmark"]},
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def result_schema() -> str:
    """Return the JSON Schema of a result file, from the structs that read it."""
    numbers = {"type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0}}}
    root, found = _components(codec._Document)  # noqa: SLF001 - private, as nobody else builds one
    for name, rows in (
        ("_Profile", ("functions", "lines")),
        ("_Python", ("functions", "paths", "parts")),
        ("_Calls", ("functions", "calls")),
    ):
        properties = found[name]["properties"]  # which msgspec leaves open, since their rows are parsed later
        properties |= dict.fromkeys(rows, numbers)
    document = found.pop(root["$ref"].rpartition("/")[2])
    document["properties"] = {"schema": {"const": codec.SCHEMA}, **document["properties"]}
    document["required"] = ["schema", *document["required"]]
    head = {"$schema": _DRAFT, "title": f"Result file {codec.SCHEMA}"}
    whole = head | {key: value for key, value in document.items() if key != "title"} | {"$defs": found}
    return json.dumps(whole, indent=2, sort_keys=True).replace("#/$defs/_", "#/$defs/").replace('"_', '"') + "\n"


def report_schema(report: type[msgspec.Struct]) -> tuple[Path, str]:
    """Return where the JSON Schema of a report is, and the schema."""
    root, found = _components(report)
    document = found.pop(root["$ref"].rpartition("/")[2])
    properties = document["properties"]
    name = properties["schema"].pop("default")
    document["required"] = ["schema", *document["required"]]
    head = {"$schema": _DRAFT, "title": name}
    text = json.dumps({**head, **document, "title": name, "$defs": found}, indent=2)
    return SCHEMA.with_name(f"{name.partition('/')[0]}.schema.json"), f"{text}\n"


def report_reference() -> str:
    """Return the tables of the fields of all reports as Markdown."""
    parts: list[str] = []
    head = "| Field | Type | Unit | Meaning |\n| --- | --- | --- | --- |"
    for report in REPORTS:
        path, text = report_schema(report)
        schema = json.loads(text)
        rows = list(_fields(schema, schema["$defs"], "", {}))
        title = schema["title"].removeprefix("cg-bench.").partition("/")[0]
        about = f"{schema['description']} Schema: [{path.name}](../schema/{path.name})."
        parts.append("\n".join((f"### {title}\n\n{about}\n\n{head}", *rows)))
    _, found = _components(Counts)
    rows = list(_fields(found[_SHORT], {}, "", {}))
    parts.append("\n".join((f"### The nine event counts\n\n{head}", *rows)))
    return "\n\n".join(parts) + "\n"


def _fields(schema: Mapping[str, Any], known: Mapping[str, Any], before: str, seen: dict[str, str]) -> Iterator[str]:
    """Yield a row for each field, and for those below it, by its path as `jq` has it; those of a struct only once."""
    for name, field in schema["properties"].items():
        kinds = [kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
        kind, dots = kinds[0], ""
        while kind.get("type") == "array" and "items" in kind:
            kind, dots = kind["items"], f"{dots}[]"
        target = kind.get("$ref", "").rpartition("/")[2]
        below = known.get(target, {})
        path = f"{before}.{name}{dots}"
        unit = field.get(UNIT) or kind.get(UNIT) or kind.get("additionalProperties", {}).get(UNIT, "")
        more = ", difference" if field.get(DIFFERENCE) or kind.get(DIFFERENCE) else ""
        null = " or null" if len(kinds) < len(field.get("anyOf", [field])) else ""
        meaning = field.get("description", "")
        yield f"| `{path}` | {_kind(kind, below, target, seen)}{null} | {unit or ''}{more if unit else more[2:]} | {meaning} |"
        if "properties" in below and target != _SHORT and target not in seen:
            seen[target] = path
            yield from _fields(below, known, path, seen)


def _kind(kind: Mapping[str, Any], below: Mapping[str, Any], target: str, seen: Mapping[str, str]) -> str:
    choices = kind.get("enum") or below.get("enum")
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    if target in seen:
        return f"as `{seen[target]}`"
    return "[counts](#the-nine-event-counts)" if target == _SHORT else str(kind.get("type", "object"))


def reference() -> str:
    """Return the tables of all keys as Markdown."""
    return f"### For all benchmarks\n\n{_rows(DEFAULTS)}\n### In a `[[benchmark]]` table\n\n{_rows(BENCHMARK)}"


def page(path: Path, made: str) -> str:
    """Return a page with a current reference."""
    before, rest = path.read_text(encoding="utf-8").split(_BEGIN)
    return f"{before}{_BEGIN}\n\n{made}\n{_END}{rest.split(_END)[1]}"


def _described(key: Key) -> dict[str, Any]:
    """Return what msgspec does not know about a key."""
    default = f" Default: {key.default}." if key.default else ""
    text = re.sub(r"\[(\w+)\]\(\S+\)", r"\1", key.meaning + default)
    found: dict[str, Any] = {"description": text.replace("`", "")}
    if key.example:
        found["examples"] = [tomllib.loads(f"example = {key.example}")["example"]]
    scalar = {"type": ["string", "number", "boolean"]}  # both are read by hand, where a parameter can be named
    if key.type == Parameters:
        found["additionalProperties"] = {"type": "array", "items": scalar, "minItems": 1, "uniqueItems": True}
    if key.type == Combinations:
        found["items"] = {"type": "object", "additionalProperties": scalar, "minProperties": 1}
    return found


def _rows(keys: Mapping[str, Key]) -> str:
    lines = ["| Key | Value | Meaning | Default |", "| --- | --- | --- | --- |"]
    for key in keys.values():
        example = f"<br>`{key.example}`" if key.example else ""
        default = "**required**, with a command" if key.required else key.default
        kind = re.sub(r"(^|or |of )a ", r"\1", key.wanted).replace("text or", "text, or")
        if key.bounds is not None:
            kind = f"{kind}, {key.bounds.ge} to {key.bounds.le}"
        lines.append(f"| `{key.name}` | {kind}{example} | {key.meaning} | {default} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the files, or with --check say whether they are current."""
    status = 0
    pages = (PAGE, page(PAGE, reference())), (REPORT_PAGE, page(REPORT_PAGE, report_reference()))
    for path, text in ((SCHEMA, schema()), (RESULT_SCHEMA, result_schema()), *map(report_schema, REPORTS), *pages):
        if sys.argv[1:] != ["--check"]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} is not current: run python scripts/generate_schema.py", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
