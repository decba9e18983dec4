"""Contexts of Callgrind become paths of Python calls; nothing is lost, whatever stands between the trampolines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.python_profile import TOP, PythonFunction
from cachegrind_bench.valgrind.perf_map import parse_map
from cachegrind_bench.valgrind.python_contexts import PathReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cachegrind_bench.model.python_profile import PythonProfile

# main at 0x1000, f at 0x1010, g at 0x1020, harness at 0x1030
TRAMPOLINES = parse_map(
    b"1000 b py::main:/w/a.py\n1010 b py::f:/w/a.py\n1020 b py::g:/w/a.py\n1030 b py::harness:/lib/h.py\n"
)
HEAD = "# callgrind format\nversion: 1\npid: 7\ncmd:  python\npart: 1\ndesc: Trigger: x\n\npositions: instr\nevents: Ir Dr\n"


def file_of(body: str, total: int, head: str = HEAD) -> str:
    return f"{head}summary: {total} 1\n\n\nob=(1) ???\nfl=(1) ???\n{body}\ntotals: {total} 1\n"


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., PythonProfile]:
    def reading(text: str, **options: object) -> PythonProfile:
        path = tmp_path / "out.7"
        path.write_text(text, encoding="utf-8")
        reader = PathReader(**options)  # type: ignore[arg-type]
        reader.read(path, TRAMPOLINES)
        return reader.profile()

    return reading


def tree(profile: PythonProfile) -> dict[str, tuple[int, int]]:
    """Return calls and Ir by path, as in `main/f`."""
    names: list[str] = []
    for path in profile.paths:
        above = "" if path.parent == TOP else names[path.parent] + "/"
        names.append(above + profile.functions[path.function].name)
    return {name: (path.calls, path.ir) for name, path in zip(names, profile.paths, strict=True)}


# A trampoline's first instruction counts the calls.
BODY = """\
fn=(2) 0x1000'0x500 [PLT]'(below main)
0x1000 1
+4 1
cfn=(4) 0x1010'0x1000'0x500 [PLT]'(below main)
calls=3 0x1010
* 500 7
+2 10
fn=(4)
0x1010 3
+4 30 9
fn=(6) 0x700'0x1010'0x1000'0x500 [PLT]'(below main)
0x700 5
fn=(8) (below main)
0x800 50
"""


def test_each_path_has_its_calls_and_its_own_cost_and_the_rest_is_native(read: Callable[..., PythonProfile]) -> None:
    profile = read(file_of(BODY, 100))
    assert tree(profile) == {"main": (1, 12), "main/f": (3, 38)}
    assert (profile.total, profile.native) == (100, 50)
    assert profile.functions == (PythonFunction("/w/a.py", "f", 0), PythonFunction("/w/a.py", "main", 0))


def test_code_without_a_name_costs_its_python_caller(read: Callable[..., PythonProfile]) -> None:
    body = "fn=(1) 0x700'0x500'0x1000\n0x700 5\nfn=(2) 0x700'0x500\n+0 6\nfn=(3) memcpy'0x1020'0x600'0x1000\n0x9 7\n"
    assert tree(read(file_of(body, 18))) == {"main": (0, 5), "main/g": (0, 7)}


def test_a_function_that_calls_itself_has_a_path_for_its_first_call_and_one_for_all_others(
    read: Callable[..., PythonProfile],
) -> None:
    body = (
        "fn=(1) 0x1010'0x1000\n0x1010 1\n+4 10\n"
        "fn=(2) 0x1010'2'0x1000\n0x1010 176\n+4 1000\n"
        "fn=(3) 0x1010'0x600'0x1010'0x600'0x1010'0x1000\n0x1010 2\n"
    )
    profile = read(file_of(body, 1189))
    assert tree(profile) == {"main": (0, 0), "main/f": (1, 11), "main/f/f": (178, 1178)}
    (f, _main) = profile.costs()
    assert (f.calls, f.ir, f.inclusive) == (179, 1189, 1189)


def test_mutual_recursion_stays_as_deep_as_it_was(read: Callable[..., PythonProfile]) -> None:
    body = "fn=(1) 0x1010'2'0x1020'0x1010'0x1000\n0x1010 1\nfn=(2) 0x1020'0x1010'0x1000\n0x1020 1\n"
    assert list(tree(read(file_of(body, 2)))) == ["main", "main/f", "main/f/g", "main/f/g/f"]


def test_the_tail_of_a_call_that_began_unseen_belongs_to_it_and_is_not_a_call(
    read: Callable[..., PythonProfile],
) -> None:
    assert tree(read(file_of("fn=(1) 0x1006\n0x1006 3\n", 3))) == {"main": (0, 3)}


def test_hidden_functions_disappear_and_what_they_called_moves_up(read: Callable[..., PythonProfile]) -> None:
    body = (
        "fn=(1) 0x1030'0x1000\n0x1030 1\n+4 20\n"
        "fn=(2) 0x1010'0x1030'0x1000\n0x1010 2\n+4 30\n"
        "fn=(3) 0x1010'0x1000\n0x1010 1\n+4 7\n"
        "fn=(4) 0x700'0x1030\n0x700 100\n"
    )
    profile = read(file_of(body, 161), hide=lambda function: function.file.startswith("/lib/"))
    assert tree(profile) == {"main": (0, 0), "main/f": (3, 40)}
    assert profile.native == 121


def test_parts_and_files_add_up(tmp_path: Path) -> None:
    one, two = tmp_path / "out.7.1", tmp_path / "out.8"
    one.write_text(file_of(BODY, 100) + file_of("fn=(4)\n0x1010 1\n", 1))
    two.write_text(file_of(BODY, 100))
    reader = PathReader()
    for path in (one, two):
        reader.read(path, TRAMPOLINES)
    profile = reader.profile()
    assert tree(profile) == {"main": (2, 24), "main/f": (7, 77)}
    assert profile.total == 201


def test_paths_with_as_many_callers_as_were_kept_are_reported(read: Callable[..., PythonProfile]) -> None:
    body = "fn=(1) 0x1010'2'0x1020'0x1000\n0x1010 1\n"
    assert read(file_of(body, 1), depth=2).cut
    assert not read(file_of(body, 1), depth=3).cut
    assert not read(file_of(body, 1)).cut


def test_stubs_can_be_skipped_where_something_else_is_above_them_that_is_not(tmp_path: Path) -> None:
    body = (
        "fn=(1) 0x900 [PLT]'0x800 [PLT]'0x1000'0x109030 [PLT]'__libc_start_call_main\n0x900 1\n"
        "fn=(2) 0x4001040 [PLT]'__libc_early_init\n0x4001040 1\n"
        "fn=(3) 0x4001040 [PLT]'0x1000'(below main)\n0x4001040 1\n"
        "fn=(4) 0x700 [PLT]'(below main)\n0x700 1\n"
        "fn=(5) 0x600'0x1000\n0x600 1\n"
    )
    path = tmp_path / "out.1"
    path.write_text(file_of(body, 5))
    reader = PathReader()
    reader.read(path, TRAMPOLINES)
    assert reader.stubs == ("0x700 [PLT]", "0x800 [PLT]", "0x900 [PLT]")


def test_two_columns_of_positions_and_other_orders_of_events_are_understood(read: Callable[..., PythonProfile]) -> None:
    head = HEAD.replace("instr", "instr line").replace("Ir Dr", "Dr Ir")
    text = f"{head}\nfn=(1) 0x1000\n0x1000 0 9 2\n+4 0 9\ntotals: 18 2\n"
    assert tree(read(text)) == {"main": (2, 2)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not end"),
        (HEAD, "does not end"),
        (file_of(BODY, 101), "add up to 100 Ir, but `totals:` says 101"),
        (file_of("fn=(9)\n0x1 1\n", 1), "has no name yet"),
        (file_of("0x1 1\n", 1), "belongs to no function"),
        (file_of("fn=(1) 0x1000\n0x1 x\n", 1), "not a line of costs"),
        (file_of("nonsense\n", 0), "not a line of a Callgrind out file"),
        (HEAD.replace("instr", "line") + "totals: 0\n", "no addresses"),
        (HEAD.replace("Ir Dr", "Dr") + "totals: 0\n", "no counts of Ir"),
    ],
)
def test_a_damaged_file_is_an_error(read: Callable[..., PythonProfile], text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        read(text)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="cannot be read"):
        PathReader().read(tmp_path / "out.1", TRAMPOLINES)


element = st.sampled_from(["0x1000", "0x1010", "0x1020", "0x1030", "0x700", "0x500 [PLT]", "(below main)", "x"])


@given(
    st.lists(st.tuples(st.lists(element, min_size=1, max_size=6), st.booleans(), st.integers(0, 9)), max_size=30),
    st.sampled_from([None, "f", "harness", "main"]),
)
def test_all_costs_add_up_to_the_total_whatever_the_paths_and_whoever_is_hidden(
    tmp_path_factory: pytest.TempPathFactory, contexts: list[tuple[list[str], bool, int]], hidden: str | None
) -> None:
    body, total = "", 0
    for number, ((own, *callers), again, cost) in enumerate(contexts):
        level = ["2"] if again else []
        body += f"fn=({number}) {chr(39).join([own, *level, *callers])}\n0x1010 {cost}\n+4 1\n"
        total += cost + 1
    path = tmp_path_factory.mktemp("paths") / "out.1"
    path.write_text(file_of(body, total))
    reader = PathReader(hide=lambda function: function.name == hidden)
    reader.read(path, TRAMPOLINES)
    profile = reader.profile()
    assert profile.total == total
    assert profile.native >= 0
    assert sum(cost.ir for cost in profile.costs()) + profile.native == total
    assert hidden not in {function.name for function in profile.functions}
    assert all(path.parent < index for index, path in enumerate(profile.paths))
    if not hidden:
        elements = [[own, *callers] for (own, *callers), _, _ in contexts]
        assert bool(profile.native) == any(
            not any(item in {"0x1000", "0x1010", "0x1020", "0x1030"} for item in names) for names in elements
        )


# main sorts, which looks things up and calls f back, which does so, too.
NATIVES = """\
fn=(2) 0x1000'(below main)
0x1000 1
cfn=(4) list_sort'0x1000'(below main)
calls=2 0x700
* 500 7
fn=(4)
0x700 20
cfn=(6) lookup'list_sort'0x1000'(below main)
calls=9 0x800
* 90
cfn=(8) 0x1010'list_sort'0x1000'(below main)
calls=3 0x1010
* 60
fn=(6)
0x800 9
fn=(7) lookup'2'lookup'list_sort'0x1000'(below main)
0x800 6
fn=(8)
0x1010 3
+4 30
cfn=(10) lookup'0x1010'list_sort'0x1000'(below main)
calls=3 0x800
* 12
fn=(10)
0x800 12
fn=(12) lookup'(below main)
0x800 5
"""


def parts_of(profile: PythonProfile) -> dict[str, tuple[int, int]]:
    """Return calls and Ir of native parts, as in `main/list_sort/lookup`."""
    paths, names = [*tree(profile)], list[str]()
    for part in profile.parts:
        names.append(f"{paths[part.path] if part.parent == TOP else names[part.parent]}/{part.name}")
    return {name: (part.calls, part.ir) for name, part in zip(names, profile.parts, strict=True)}


def test_native_functions_that_are_kept_are_parts_of_the_paths_that_ran_them(
    read: Callable[..., PythonProfile],
) -> None:
    profile = read(file_of(NATIVES, 86), kept=("list_sort", "lookup"))
    assert tree(profile) == {"main": (1, 36), "main/f": (3, 45)}
    assert parts_of(profile) == {
        "main/list_sort": (2, 20),
        "main/list_sort/lookup": (9, 15),
        "main/f/lookup": (3, 12),
    }
    assert profile.native == 5


def test_without_any_that_are_kept_the_paths_are_the_same(read: Callable[..., PythonProfile]) -> None:
    profile = read(file_of(NATIVES, 86))
    assert tree(profile) == {"main": (1, 36), "main/f": (3, 45)}
    assert profile.parts == ()


def test_native_parts_of_functions_that_are_hidden_are_native(read: Callable[..., PythonProfile]) -> None:
    profile = read(file_of(NATIVES, 86), kept=("lookup",), hide=lambda function: function.name == "f")
    assert tree(profile) == {"main": (1, 36)}
    assert parts_of(profile) == {"main/lookup": (9, 15)}
    assert profile.native == 50
