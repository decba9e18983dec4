"""Write the JSON Schemas of the configuration and of result files, and the reference in docs/configuration.md.

`python scripts/generate_schema.py`, or `--check` to compare only.
"""

from __future__ import annotations

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

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = ROOT / "schema" / "cg-bench.schema.json"
RESULT_SCHEMA = ROOT / "schema" / "cg-bench.run.schema.json"
PAGE = ROOT / "docs" / "configuration.md"
_BEGIN, _END = "<!-- reference: made by scripts/generate_schema.py -->", "<!-- end of reference -->"


def schema() -> str:
    """Return the JSON Schema of cg-bench.toml, and so of the table [tool.cg-bench]; draft 7, as editors know it."""
    _, found = msgspec.json.schema_components([Defaults], ref_template="#/definitions/{name}")
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
    (root,), found = msgspec.json.schema_components([codec._Document])  # noqa: SLF001 - private, as nobody else builds one
    for name, rows in (
        ("_Profile", ("functions", "lines")),
        ("_Python", ("functions", "paths")),
        ("_Calls", ("functions", "calls")),
    ):
        properties = found[name]["properties"]  # which msgspec leaves open, since their rows are parsed later
        properties |= dict.fromkeys(rows, numbers)
    document = found.pop(root["$ref"].rpartition("/")[2])
    document["properties"] = {"schema": {"const": codec.SCHEMA}, **document["properties"]}
    document["required"] = ["schema", *document["required"]]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"Result file {codec.SCHEMA}"}
    whole = head | {key: value for key, value in document.items() if key != "title"} | {"$defs": found}
    return json.dumps(whole, indent=2, sort_keys=True).replace("#/$defs/_", "#/$defs/").replace('"_', '"') + "\n"


def reference() -> str:
    """Return the tables of all keys as Markdown."""
    return f"### For all benchmarks\n\n{_rows(DEFAULTS)}\n### In a `[[benchmark]]` table\n\n{_rows(BENCHMARK)}"


def page() -> str:
    """Return docs/configuration.md with a current reference."""
    before, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
    return f"{before}{_BEGIN}\n\n{reference()}\n{_END}{rest.split(_END)[1]}"


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
    for path, text in ((SCHEMA, schema()), (RESULT_SCHEMA, result_schema()), (PAGE, page())):
        if sys.argv[1:] != ["--check"]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} is not current: run python scripts/generate_schema.py", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
