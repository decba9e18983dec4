"""A slowdown of about 1 %, planted in one of a package's fifty Python functions, is blamed on that function.

`tests/data/python/ledger` is the package: a tree of calls, in which callers and callees of the slower function move too.
"""

from __future__ import annotations

import ast
import json
import shutil
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.model.codec import decode
from tests.pythons import any_python

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.valgrind.conftest import CgBench, Finished

LEDGER = Path(__file__).resolve().parent.parent / "data" / "python" / "ledger"
FUNCTIONS = 50
# Pythons differ in what a turn of a loop costs, and in all the rest.
LEAST, MOST = Fraction(3, 1000), Fraction(3, 100)
OPTIONS = ("--python-profile", "--id", "ledger", "-q")

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """Work that is done in one function from now on: some text of its module, and what stands there instead."""

    kind: str
    module: str
    function: str
    old: str
    new: str


PLANTS = (
    Plant(
        kind="work of its own",
        module="text",
        function="number",
        old="    value = 0\n",
        new="    value = 0\n    for _ in range(6):\n        value += 0\n",
    ),
    Plant(
        kind="work in a property",
        module="rows",
        function="Row.total",
        old="        return discounted(",
        new="        for _ in range(8):\n            pass\n        return discounted(",
    ),
    Plant(
        kind="work between the values of a generator",
        module="rows",
        function="rows",
        old="        yield parsed(line)\n",
        new="        for _ in range(16):\n            pass\n        yield parsed(line)\n",
    ),
    Plant(
        kind="work in a method that is a generator and recursive",
        module="tree",
        function="Node.__iter__",
        old="        yield self\n",
        new="        for _ in range(16):\n            pass\n        yield self\n",
    ),
    Plant(
        kind="work in a function that calls itself through native code",
        module="tree",
        function="depth",
        old="    return 1 + max(",
        new="    for _ in range(16):\n        pass\n    return 1 + max(",
    ),
    Plant(
        kind="work in a decorated function",
        module="money",
        function="taxed",
        old="    return cents + tax(cents)\n",
        new="    for _ in range(8):\n        pass\n    return cents + tax(cents)\n",
    ),
    Plant(
        kind="work in a function that sorted() calls",
        module="rows",
        function="by_total",
        old="    return row.total, by_name(row)\n",
        new="    for _ in range(32):\n        pass\n    return row.total, by_name(row)\n",
    ),
    Plant(
        kind="another function, called more often",
        module="rows",
        function="dear",
        old="if is_dear(row)]",
        new="if all(map(is_dear, [row] * 3))]",
    ),
    Plant(
        kind="a new function",
        module="money",
        function="added",
        old="def added(amounts):\n    total = Money.zero()\n",
        new="def halves(number):\n    while number:\n        number -= 1\n\n\n"
        "def added(amounts):\n    halves(350)\n    total = Money.zero()\n",
    ),
    Plant(
        kind="native code",
        module="report",
        function="head",
        old="    return [title(",
        new="    sorted([number * 7919 % 1009 for number in range(80)])\n    return [title(",
    ),
)


def written(folder: Path, plant: Plant | None = None) -> Path:
    shutil.copytree(LEDGER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    if plant is not None:
        path = folder / "books" / f"{plant.module}.py"
        source = path.read_text(encoding="utf-8")
        assert source.count(plant.old) == 1
        path.write_text(source.replace(plant.old, plant.new), encoding="utf-8")
    return folder


def line_of(path: Path, name: str) -> int:
    """Return the line of the `def` of a function or method."""
    node: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    for part in name.split("."):
        (node,) = (
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.ClassDef | ast.FunctionDef) and child.name == part
        )
    assert isinstance(node, ast.FunctionDef)
    return node.lineno


def measured(cg_bench: CgBench, folder: Path) -> Finished:
    # The first, native execution leaves compiled modules behind.
    return cg_bench.run(any_python(), "-S", "main.py", options=OPTIONS, cwd=folder)


@pytest.fixture(scope="module")
def base(once: Callable[[str, Callable[[CgBench], Finished]], Finished], shared_folder: Path) -> Path:
    """Return the result file of the package as it is, measured once."""
    finished = once("ledger", lambda cg_bench: measured(cg_bench, written(cg_bench.folder / "without")))
    assert finished.code == 0, finished.stderr
    return shared_folder / "ledger" / "result1.json"


def test_the_package_has_fifty_functions_and_calls_them_all(base: Path) -> None:
    (benchmark,) = decode(base.read_bytes(), base.name).benchmarks
    assert benchmark.python is not None
    called = {function for function in benchmark.python.functions if function.file.startswith("books/")}
    defined = {
        (f"books/{path.name}", line)
        for path in LEDGER.glob("books/*.py")
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if text.lstrip().startswith("def ")
    }
    assert len(defined) == FUNCTIONS
    assert defined <= {(function.file, function.line) for function in called}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.kind.replace(" ", "-"))
def test_one_percent_more_or_less_in_one_function_of_fifty_is_blamed_on_it(
    cg_bench: CgBench, base: Path, plant: Plant, tmp_path: Path
) -> None:
    folder = written(tmp_path / "planted", plant)
    counts = measured(cg_bench, folder).counts
    before = json.loads(base.read_bytes())["benchmarks"][0]["counts"]["Ir"]
    assert LEAST <= Fraction(counts["Ir"] - before, before) <= MOST
    candidate = tmp_path / "result1.json"
    assert named(cg_bench, base, candidate, plant, folder) == 1  # a regression
    assert named(cg_bench, candidate, base, plant, LEDGER) == 0


def named(cg_bench: CgBench, base: Path, candidate: Path, plant: Plant, folder: Path) -> int:
    """Compare, check that this function is named first, on its line in the candidate's folder, and return the exit code."""
    document = cg_bench.folder / "document.json"
    told = cg_bench("diff", str(base), str(candidate), "--threshold", "0.1%", "--json", str(document))
    file = f"books/{plant.module}.py"
    line = line_of(folder / file, plant.function)

    (benchmark,) = json.loads(document.read_bytes())["benchmarks"]
    for found in (benchmark["python"]["blamed"], benchmark["python"]["functions"][0]):
        assert (found["function"], found["file"], found["line"]) == (plant.function, file, line)
    (said,) = (text for text in told.stdout.splitlines() if "in Python:" in text)
    assert f"in Python: {plant.function}, {file}:{line}, " in said
    assert f"{plant.function} ({file}:{line})" in told.stdout.splitlines()[-1]
    return told.code
