"""Which functions make the difference: matched across rebuilds, and adding up exactly."""

from __future__ import annotations

from time import process_time

from cachegrind_bench.compare.explain import LOADER, MovedFunction, blamed, details, explain, ranked
from cachegrind_bench.model.metrics import EVENTS, ZERO, Counts, FunctionCost, Profile
from cachegrind_bench.model.symbols import Symbol
from tests.unit.comparing import compared, measured


def ir(counts: Counts) -> int:
    return counts.Ir


def cost(number: int, reads: int = 0) -> Counts:
    return Counts.of([number, 0, 0, reads, 0, 0, 0, 0, 0])


def profile(*rows: tuple[str, str, int]) -> Profile:
    functions = tuple(FunctionCost(file, name, cost(number).as_tuple()) for file, name, number in sorted(rows))
    return Profile(events=EVENTS, functions=functions)


def test_a_function_is_found_again_in_a_rebuild_elsewhere_under_another_suffix() -> None:
    base = profile(("/tmp/a/src/x.c", "work.constprop.0", 100), ("/tmp/a/src/x.c", "main", 5))
    candidate = profile(("/tmp/b/src/x.c", "work.isra.0", 130), ("/tmp/b/src/x.c", "main", 5))
    found = explain(base, candidate)
    (row,) = found.functions
    assert (row.name, row.file, row.delta.Ir) == ("work.isra.0", "src/x.c", 30)
    assert row.base_keys == (("/tmp/a/src/x.c", "work.constprop.0"),)
    assert row.candidate_keys == (("/tmp/b/src/x.c", "work.isra.0"),)
    assert found.total == row.delta


def test_rows_of_one_function_are_added_up_unchanged_ones_too() -> None:
    base = profile(("x.c", "f", 100), ("x.c", "f.cold", 7), ("x.c", "g", 1))
    candidate = profile(("x.c", "f", 100), ("x.c", "f.part.0", 9), ("x.c", "g", 1))
    (row,) = explain(base, candidate).functions
    assert (row.name, row.base.Ir, row.candidate.Ir) == ("f", 107, 109)


def test_functions_of_one_side_only_count_in_full() -> None:
    found = explain(profile(("x.c", "old", 3)), profile(("x.c", "new", 10)))
    assert [(row.name, row.base.Ir, row.candidate.Ir) for row in found.functions] == [("new", 0, 10), ("old", 3, 0)]
    assert found.total.Ir == 7


def test_where_most_of_the_cost_is_in_functions_of_one_side_only_none_is_to_blame() -> None:
    names = ("read", "parse", "emit"), ("load", "scan", "write")
    rows = ([("x.c", name, 100_000 + len(name)) for name in side] for side in names)
    base, candidate = (profile(*side, ("x.c", "main", 50_000)) for side in rows)
    found = details(base, candidate, compared(measured(), measured()))
    assert (found.lonely, found.blamed, found.cause) == ((3, 3), None, None)
    one = profile(("x.c", "count", 100_000), ("x.c", "main", 5)), profile(("x.c", "sum", 120_000), ("x.c", "main", 5))
    renamed = details(*one, compared(measured(), measured()))
    assert (renamed.lonely, renamed.blamed is None) == (None, False)


def test_an_equal_function_in_another_file_has_moved() -> None:
    base = profile(("a.c", "f", 10), ("a.c", "main", 1))
    candidate = profile(("b.c", "f", 10), ("a.c", "main", 1))
    found = explain(base, candidate)
    assert found.functions == ()
    assert found.moved == (MovedFunction(name=Symbol("f"), base_file="a.c", candidate_file="b.c"),)
    assert found.total == ZERO


def test_a_function_that_changed_on_its_way_to_another_file_is_one_row_under_the_new_one() -> None:
    found = explain(profile(("a.c", "f", 11)), profile(("b.c", "f", 10)))
    assert [(row.file, row.delta.Ir) for row in found.functions] == [("b.c", -1)]
    assert found.moved == ()


def test_a_function_that_more_than_one_file_defines_is_a_loss_and_a_gain() -> None:
    base = profile(("a.c", "f", 10), ("c.c", "f", 1))
    found = explain(base, profile(("b.c", "f", 11), ("c.c", "f", 2)))
    assert [row.delta.Ir for row in found.functions] == [-10, 11, 1]


def test_code_inlined_from_other_files_belongs_to_its_function() -> None:
    name = "_ZN6orders8group_by17h0123456789abcdefE"
    base = profile(("src/orders.rs", name, 10), ("/rustc/" + "a" * 40 + "/library/core/src/ptr/mod.rs", name, 5))
    candidate = profile(("src/orders.rs", name, 12), ("/rustc/" + "a" * 40 + "/library/core/src/ptr/mod.rs", name, 50))
    (row,) = explain(base, candidate).functions
    assert (row.file, row.delta.Ir, len(row.candidate_keys)) == ("src/orders.rs", 47, 2)


def test_in_c_inlined_headers_belong_to_a_function_with_one_home_only() -> None:
    base = profile(("a.c", "f", 10), ("list.h", "f", 5), ("a.c", "init", 1), ("b.c", "init", 1), ("list.h", "init", 1))
    candidate = profile(
        ("a.c", "f", 11), ("list.h", "f", 9), ("a.c", "init", 2), ("b.c", "init", 2), ("list.h", "init", 2)
    )
    rows = [(row.name, row.file, row.delta.Ir) for row in explain(base, candidate).functions]
    assert rows == [("f", "a.c", 5), ("init", "a.c", 1), ("init", "b.c", 1), ("init", "list.h", 1)]


def test_the_interpreter_s_loop_of_cpython_is_one_function_in_all_the_files_that_it_is_generated_from() -> None:
    files, name = ("Python/ceval.c", "Python/bytecodes.c", "Python/generated_cases.c.h"), "_PyEval_EvalFrameDefault"
    found = explain(profile(*((file, name, 10) for file in files)), profile(*((file, name, 12) for file in files)))
    assert [(row.file, row.delta.Ir) for row in found.functions] == [("Python/ceval.c", 6)]


def test_the_loader_of_libraries_is_one_row() -> None:
    pieces = ("./elf/./elf/dl-lookup.c", "do_lookup_x"), ("./elf/../sysdeps/x86_64/dl-machine.h", "_dl_relocate_object")
    base, candidate = (
        profile(*((file, name, cost) for file, name in pieces), ("mold/elf/input-files.cc", "parse", cost))
        for cost in (3, 9)
    )
    rows = {row.name: row.delta.Ir for row in explain(base, candidate).functions}
    assert rows == {LOADER: 12, "parse": 6}


def test_what_one_piece_gained_and_another_lost_is_not_a_difference() -> None:
    base = profile(("a.c", "f", 10), ("list.h", "f", 5))
    found = explain(base, profile(("a.c", "f", 12), ("list.h", "f", 3)))
    assert (found.functions, found.total) == ((), ZERO)


def test_pieces_without_a_name_stay_apart() -> None:
    found = explain(profile(("a.c", "???", 10), ("x.h", "???", 5)), profile(("a.c", "???", 12), ("x.h", "???", 6)))
    assert [row.delta.Ir for row in found.functions] == [2, 1]


def test_functions_without_a_name_never_move() -> None:
    found = explain(profile(("a.c", "???", 10)), profile(("b.c", "???", 10)))
    assert found.moved == ()
    assert [row.delta.Ir for row in found.functions] == [-10, 10]


def test_debug_information_on_one_side_only_hides_no_function() -> None:
    base = profile(("???", "f", 100), ("???", "g", 5))
    candidate = profile(("src/x.c", "f", 90), ("inline.h", "f", 20), ("src/x.c", "g", 5))
    found = explain(base, candidate)
    (row,) = found.functions
    assert (row.name, row.file, row.base.Ir, row.candidate.Ir) == ("f", "src/x.c", 100, 110)
    assert found.moved == ()
    (mirrored,) = explain(candidate, base).functions
    assert (mirrored.file, mirrored.delta.Ir) == ("src/x.c", -10)


def test_a_function_with_and_without_a_file_on_one_side_is_left_alone() -> None:
    found = explain(profile(("???", "f", 100), ("a.c", "f", 7)), profile(("b.c", "f", 100)))
    assert found.total.Ir == -7
    assert sum(row.delta.Ir for row in found.functions) == -7


def test_events_are_taken_by_name() -> None:
    backwards = tuple(reversed(("Bc", *EVENTS)))
    rows = (FunctionCost("x.c", "f", tuple(reversed((99, *range(9))))),)
    base = Profile(events=EVENTS, functions=(FunctionCost("x.c", "f", tuple(range(9))),))
    found = explain(base, Profile(events=backwards, functions=rows))
    assert (found.total, found.functions) == (ZERO, ())


def test_empty_profiles_are_equal() -> None:
    nothing = profile()
    found = explain(nothing, nothing)
    assert (found.total, found.functions, found.moved, found.files) == (ZERO, (), (), ())
    assert blamed(found, ir) is None


def test_the_largest_rows_come_first_whatever_their_sign() -> None:
    base = profile(("x.c", "a", 50), ("x.c", "b", 10), ("x.c", "c", 10), ("x.c", "d", 10))
    candidate = profile(("x.c", "a", 10), ("x.c", "b", 70), ("x.c", "c", 11), ("x.c", "d", 9))
    found = ranked(explain(base, candidate).functions, ir)
    assert [(row.name, row.delta.Ir) for row in found] == [("b", 60), ("a", -40), ("c", 1), ("d", -1)]


def test_blame_follows_the_direction_of_the_total() -> None:
    base = profile(("x.c", "a", 90), ("x.c", "b", 10), ("x.c", "c", 10))
    slower = profile(("x.c", "a", 40), ("x.c", "b", 50), ("x.c", "c", 30))
    assert (row := blamed(explain(base, slower), ir)) is not None
    assert row.name == "b"
    assert (row := blamed(explain(slower, base), ir)) is not None
    assert row.name == "b"
    even = profile(("x.c", "a", 40), ("x.c", "b", 40), ("x.c", "c", 30))
    assert (row := blamed(explain(base, even), ir)) is not None
    assert row.name == "a"


def test_nobody_is_blamed_for_what_does_not_weigh() -> None:
    base = Profile(events=EVENTS, functions=(FunctionCost("x.c", "f", cost(5, reads=1).as_tuple()),))
    candidate = Profile(events=EVENTS, functions=(FunctionCost("x.c", "f", cost(5, reads=2).as_tuple()),))
    assert blamed(explain(base, candidate), ir) is None


def test_files_hold_all_their_functions_and_moved_ones_in_both() -> None:
    base = profile(("/a/x.c", "f", 10), ("/a/x.c", "same", 100), ("/a/y.c", "g", 1), ("/a/z.c", "h", 1))
    candidate = profile(("/b/x.c", "same", 100), ("/b/y.c", "g", 2), ("/b/y.c", "f", 10), ("/b/z.c", "h", 1))
    found = explain(base, candidate)
    assert [(row.name, row.base.Ir, row.candidate.Ir) for row in found.files] == [("x.c", 110, 100), ("y.c", 1, 12)]
    assert found.total.Ir == 1


def test_large_profiles_that_hardly_differ_are_compared_quickly() -> None:
    def large(build: str, planted: int) -> Profile:
        rows = [(f"/{build}/src/f{n % 200}.c", f"function_{n}", 1000 + n) for n in range(5000)]
        return profile(*rows, (f"/{build}/src/f0.c", "planted", planted))

    base, candidate = large("one", 10), large("two", 11)
    start = process_time()
    found = explain(base, candidate)
    assert process_time() - start < 1  # 0.03 s on a quiet machine
    assert [row.name for row in found.functions] == ["planted"]
