"""Reports as JSON: what is written is what the schemas say, and every field is described."""

from __future__ import annotations

import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cachegrind_bench.measure.doctor import Diagnosis, Level, checked
from cachegrind_bench.measure.findings import Verification
from cachegrind_bench.model.result import Commit, Point, Score, Snapshot, Status
from cachegrind_bench.model.symbols import Symbol
from cachegrind_bench.render.diagnosis import machine
from cachegrind_bench.render.documents import checks, lists
from cachegrind_bench.render.documents.checks import DoctorReport, VerifyReport
from cachegrind_bench.render.documents.comparisons import DiffReport
from cachegrind_bench.render.documents.lists import BaselineList, BenchmarkList, ProblemList, RunList
from cachegrind_bench.render.documents.summaries import Summary
from cachegrind_bench.render.documents.trends import TrendReport, trend
from cachegrind_bench.store.protocol import Problem
from tests.unit import trending
from tests.unit.samples import benchmark, result

if TYPE_CHECKING:
    from cachegrind_bench.render.documents.document import Document

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
COMMIT = Commit(sha="a" * 40, parent=None, branch="main", dirty=False, committed_at="2026-01-31T12:00:00Z")
POINTS = (
    Point(id="a", key="k", status=Status.OK, counts=benchmark().counts, score=Score(model="ir", value=1)),
    Point(id="b", key="k", status=Status.FAILED, counts=None, score=None),
)
RUN = Snapshot(uid="u", tool_version="1", created_at="2026-01-31T12:00:00Z", commit=COMMIT, env_key="e", points=POINTS)
CHECKED = Diagnosis(checks=(checked(Level.OK, "Valgrind", "3.24"),), works=True)
VERIFIED = Verification(
    command="x", tool="cachegrind", ir=1, executions=2, findings=(), clock_pinned=False, warnings=("w",)
)
WRITTEN: dict[type[Document], list[str]] = {
    DiffReport: [(GOLDEN / name).read_text("utf-8") for name in ("comparison-52.json", "comparison-python.json")],
    Summary: [(GOLDEN / "summary.json").read_text("utf-8")],
    TrendReport: [trend(trending.small())],
    BenchmarkList: [lists.benchmarks([], "cg-bench.toml")],
    DoctorReport: [machine(CHECKED, "json")],
    VerifyReport: [checks.verification(VERIFIED, "fine")],
    RunList: [RunList(store="file:.cg-bench", total=1, runs=(RUN,)).text()],
    ProblemList: [
        ProblemList(store="file:.cg-bench", records=1, problems=(Problem(where="x", what="is damaged"),)).text()
    ],
    BaselineList: [lists.baselines({"main": result(benchmark()), "old": "cannot be read"})],
}


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.__name__)
def test_what_is_written_can_be_read_as_its_schema_says_and_has_nothing_else(kind: type[Document]) -> None:
    def read(kind: type[object], value: Any) -> object:
        return Symbol(value) if kind is Symbol else Fraction(value, 1_000_000)

    for text in WRITTEN[kind]:
        assert msgspec.json.decode(text, type=kind, dec_hook=read).text() == text


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.__name__)
def test_every_field_is_described(kind: type[Document]) -> None:
    _, found = msgspec.json.schema_components([kind], schema_hook=lambda _other: {"type": "integer"})
    fields: dict[str, Any] = {
        f"{name}.{field}": about
        for name, struct in found.items()
        for field, about in struct.get("properties", {}).items()
    }
    assert [name for name, about in fields.items() if "description" not in about] == [f"{kind.__name__}.schema"]


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.__name__)
def test_the_schema_of_each_is_committed_under_its_name(kind: type[Document]) -> None:
    name = msgspec.json.decode(WRITTEN[kind][0])["schema"]
    schema = msgspec.json.decode((ROOT / "schema" / f"{name.partition('/')[0]}.schema.json").read_bytes())
    assert schema["properties"]["schema"]["enum"] == [name]
    assert schema["required"][0] == "schema"


RECIPES = re.findall(r"^```sh\n(jq .*?)^```$", (ROOT / "docs" / "json.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_recipes_of_the_documentation_read_a_report(tmp_path: Path, recipe: str) -> None:
    (tmp_path / "report.json").write_text(WRITTEN[DiffReport][0], encoding="utf-8")
    code = recipe.replace('curl -sS --json @- "$SLACK_WEBHOOK"', "cat")
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) in {(0, ""), (1, "")}  # 1: the rule of `jq -e` is broken
    assert done.stdout or (tmp_path / "report.csv").stat().st_size
