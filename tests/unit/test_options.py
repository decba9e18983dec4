"""Cache geometry and Valgrind's arguments."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from cachegrind_bench.errors import UsageError
from cachegrind_bench.valgrind.options import (
    EXECS,
    FORKS,
    OUTER_FORK,
    THREADS,
    Cache,
    Collect,
    Geometry,
    Scope,
    Tool,
    arguments,
    python_paths,
)

OUT = Path("/tmp/cg-bench.00/out")


# Each of these was given to Valgrind 3.19, which took it.
@pytest.mark.parametrize(
    ("text", "cache"),
    [
        ("32768,8,64", Cache(32768, 8, 64)),
        (" 32768 , 8 , 64 ", Cache(32768, 8, 64)),
        ("49152,12,64", Cache(49152, 12, 64)),
        ("128,1,64", Cache(128, 1, 64)),
        ("128,2,64", Cache(128, 2, 64)),
        ("32768,8,16", Cache(32768, 8, 16)),
        ("65536,2,32768", Cache(65536, 2, 32768)),
        ("1073741824,16,64", Cache(1 << 30, 16, 64)),
    ],
)
def test_a_cache_that_valgrind_simulates_is_read(text: str, cache: Cache) -> None:
    assert Cache.parse(text, "--I1") == cache
    assert str(cache) == text.replace(" ", "")


# And each of these it refused, in its own words: "line size is too small", "set count is not a power of two", "cache
# size <= line size", "associativity > (size / line size)", "too large and overflowed".
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("32768,8,8", "the line size must be a power of two and at least 16"),
        ("64,1,64", "the size must be larger than a line"),
        ("128,3,64", "size must be at least associativity times line size"),
        ("30000,8,64", "the number of sets, must be a power of two"),
        ("0,8,64", "size and associativity must be positive"),
        ("2147483648,16,64", "the size must be below 2147483648 bytes"),
    ],
)
def test_a_cache_that_valgrind_refuses_is_refused_before(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        Cache.parse(text, "--LL")
    assert caught.value.message.startswith(f"--LL {text}: ")
    assert caught.value.message.endswith(problem)
    assert caught.value.hint == "a cache that works: --LL 32768,8,64"


@pytest.mark.parametrize(
    "text", ["", "32768", "32768,8", "32768,8,64,1", "32k,8,64", "-32768,8,64", "32768,8,", "٣,8,64", "1_0,8,64"]
)
def test_what_is_not_a_geometry_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(UsageError, match="is not a cache") as caught:
        Cache.parse(text, "--D1")
    assert caught.value.hint == "write SIZE,ASSOCIATIVITY,LINE_SIZE: --D1 32768,8,64"


def test_the_default_geometry_is_that_of_the_design() -> None:
    assert str(Geometry()) == "I1=32768,8,64 D1=32768,8,64 LL=8388608,16,64"


def test_cachegrinds_arguments_are_these_and_in_this_order() -> None:
    assert arguments(Tool.CACHEGRIND, Geometry(), OUT, guest_chase_off=True) == (
        "--tool=cachegrind",
        "--command-line-only=yes",
        "--vgdb=no",
        "--demangle=no",
        "--fair-sched=try",
        "--trace-children=yes",
        "--vex-guest-chase=no",
        "--cache-sim=yes",
        "--I1=32768,8,64",
        "--D1=32768,8,64",
        "--LL=8388608,16,64",
        "--log-file=/tmp/cg-bench.00/out/log.%p",
        "--cachegrind-out-file=/tmp/cg-bench.00/out/out.%p",
    )


def test_callgrind_is_asked_to_split_at_forks_and_execs() -> None:
    found = arguments(Tool.CALLGRIND, Geometry(), OUT, guest_chase_off=True)
    assert {"--dump-before=fork", "--dump-before=_Fork", "--dump-before=vfork", "--dump-before=execve"} <= set(found)
    assert "--callgrind-out-file=/tmp/cg-bench.00/out/out.%p" in found


def test_another_layout_begins_so_many_pages_above_valgrinds_usual_place() -> None:
    usual = arguments(Tool.CACHEGRIND, Geometry(), OUT, guest_chase_off=True, pages=0)
    assert not [argument for argument in usual if "aspace" in argument]
    for tool in Tool:
        assert "--aspace-minaddr=0x4025000" in arguments(tool, Geometry(), OUT, guest_chase_off=True, pages=37)


def test_an_old_valgrind_is_not_given_what_it_does_not_know() -> None:
    found = arguments(Tool.CACHEGRIND, Geometry(), OUT, guest_chase_off=False)
    assert not [argument for argument in found if "chase" in argument]


def test_a_percent_sign_in_the_directory_is_doubled() -> None:
    found = arguments(Tool.CACHEGRIND, Geometry(), Path("/tmp/100%p"), guest_chase_off=True)
    assert found[-2:] == ("--log-file=/tmp/100%%p/log.%p", "--cachegrind-out-file=/tmp/100%%p/out.%p")


def test_regions_are_instrumented_from_the_first_mark_on_but_for_paths_from_the_start() -> None:
    def options(collect: Collect) -> set[str]:
        found = arguments(Tool.CALLGRIND, Geometry(), OUT, guest_chase_off=True, collect=collect)
        return {option for option in found if "atstart" in option}

    assert options(Collect(scope=Scope.REGIONS)) == {"--instr-atstart=no", "--collect-atstart=no"}
    assert options(Collect(scope=Scope.REGIONS, python_depth=9)) == {"--collect-atstart=no"}
    assert options(Collect(python_depth=9)) == set()
    assert options(Collect(scope=Scope.CALLS, python_depth=9)) == options(Collect(scope=Scope.CALLS))


def test_the_model_ir_simulates_no_caches_unless_the_time_is_estimated() -> None:
    only_ir, estimated = (Geometry.chosen({"model": "ir", "estimate": on}, "--") for on in (False, True))
    assert str(only_ir) == "none"
    assert "--cache-sim=no" in arguments(Tool.CACHEGRIND, only_ir, OUT, guest_chase_off=True)
    assert "--cache-sim=yes" in arguments(Tool.CACHEGRIND, estimated, OUT, guest_chase_off=True)


def test_paths_of_python_are_reported_in_instructions_alone_so_no_cache_is_simulated() -> None:
    found = arguments(Tool.CALLGRIND, Geometry(), OUT, guest_chase_off=True, collect=Collect(python_depth=100))
    assert [option for option in found if option.startswith(("--cache-sim", "--I1", "--D1", "--LL"))] == [
        "--cache-sim=no"
    ]


def test_paths_of_python_skip_every_name_but_those_before_which_counts_are_written_out() -> None:
    options = python_paths(
        Collect(python_depth=100, stubs=("0x48c2a70 [PLT]",), kept=("list_sort", "_PyDict_Get.part.0"))
    )
    patterns = [option.removeprefix("--fn-skip=") for option in options if option.startswith("--fn-skip=")]

    def skipped(name: str) -> bool:
        return any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns)

    assert not any(map(skipped, (OUTER_FORK, *FORKS, *THREADS, *EXECS, "list_sort", "_PyDict_Get.part.0")))
    assert all(map(skipped, ("list_sort_impl", "list_sor", "list", "_PyDict_Get", "_PyDict_Get.part.01")))
    others = (
        "f fo for forks fork2 _Forked __fork v vfor vfork_ clone3 __clone2 c e exec execv execvp main _ _PyEval_Vector"
    )
    assert all(map(skipped, [*others.split(), "fork.cold", "fork@@GLIBC_2.2.5", "0x48c2a70 [PLT]", "Z9f"]))
    assert not any(map(skipped, ("0x54be000", "0x48c2a80 [PLT]", "(below main)")))
    assert "--separate-callers=100" in options
