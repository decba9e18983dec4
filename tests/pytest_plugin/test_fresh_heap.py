"""What is measured starts with a heap and a method cache that code beside it does not decide about."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from cachegrind_bench.pytest_plugin.cpython import fresh_heap

# Makes holes of all sizes in both heaps first. Prints how far apart are what is allocated afterwards.
FRESH = """
import random
random.seed(SEED)
holes = [bytes(random.randrange(4000)) for _ in range(20_000)]
for place in random.sample(range(20_000), 9_000):
    holes[place] = None
from cachegrind_bench.pytest_plugin.cpython.fresh_heap import take_free_memory
take_free_memory()
made = [bytes(1000) for _ in range(20)], [bytes(100) for _ in range(20)]
steps = [[id(after) - id(before) for before, after in zip(row, row[1:])] for row in made]
print(id(made[0][1]) % 4096, steps)
"""

# Prints how many hot look-ups of different types share an entry of the cache, before and after their versions are changed.
LOOK_UPS = """
from sys import intern
from cachegrind_bench.pytest_plugin.cpython import type_versions as own
own._burn(SEED)
junk = [str(number) + "." for number in range(SEED)]
kinds = [type(f"K{number}", (), {intern(f"name{number}{part}"): part for part in range(8)}) for number in range(120)]
names = {kind: [f"name{number}{part}" for part in range(8)] for number, kind in enumerate(kinds)}
names = {kind: [next(key for key in vars(kind) if key == name) for name in own] for kind, own in names.items()}
def call():
    for kind, own in names.items():
        for name in own:
            getattr(kind, name)
def shared():
    # By different types: two names of one type whose addresses collide cannot be kept apart.
    call()
    found = {}
    for kind, row in names.items():
        for name in row:
            found.setdefault(own._entry(own._version(kind), id(name)), set()).add(kind)
    return sum(len(kinds) - 1 for kinds in found.values())
before = shared()
own.spread_look_ups(own.observe_look_ups(call, set()))
print(before, shared())
"""

# Prints what is looked up in 20 types, after memory was used in other ways; twice, as code is specialised in the first calls.
OBSERVED = """
import os
from cachegrind_bench.pytest_plugin.cpython import type_versions as own
own._burn(SEED)
junk = [str(number) + "." for number in range(SEED)]
kinds = [type(f"K{number}", (), {f"name_{number}_{part}": part for part in range(5)}) for number in range(20)]
names = [(kind(), list(vars(kind))[:5]) for kind in kinds]
def call():
    for thing, row in names:
        for name in row:
            getattr(thing, name)
    return os.path.join("a", "b")
codes = {call.__code__, os.path.join.__code__}
first = own.observe_look_ups(call, codes)
for _ in range(20):
    call()
print(first == own.observe_look_ups(call, codes), first)
"""


# Prints whether what a visitor looks up is found, but for two of eight times: at some addresses another look-up hides one. Nothing but the cache holds its names, which are freed when it gives them up.
VISITS = """
import ast
from cachegrind_bench.pytest_plugin.cpython import type_versions as own
class Visitor(ast.NodeVisitor):
    def visit_Name(self, node):
        return self.generic_visit(node)
tree = ast.parse("+".join(f"a{number}" for number in range(200)))
call = lambda: Visitor().visit(tree)
found = [own.observe_look_ups(call, set()) for _ in range(8)]
print(sum({"generic_visit", "visit_Name"} <= set(one["Visitor"]) for one in found) > 5)
"""

# Prints whether look-ups are found in a type of a module in C that was imported late: the garbage collector does not know it.
LATE = """
import sys
from cachegrind_bench.pytest_plugin.cpython import type_versions as own
own.prepare_to_observe()
own.gc.freeze()
assert "asyncio" not in sys.modules
import asyncio
future = asyncio.Future(loop=asyncio.new_event_loop())
def call():
    return future.done()
print("done" in own.observe_look_ups(call, {call.__code__}).get("Future", ()))
"""

# Prints where the cache was found, some times: a type gets its version by a look-up.
FOUND = """
from cachegrind_bench.pytest_plugin.cpython import type_versions as own
own._burn(SEED)
print(len({own._find_cache.__wrapped__() for _ in range(5)}), own._find_cache() > 0)
interpreter = own.ctypes.pythonapi.PyInterpreterState_Get
print("of the state could be read:", len(own._memory(int(interpreter()))), "bytes")
"""


def said(code: str, seed: int) -> str:
    # As in the seal, addresses are not randomised.
    done = subprocess.run(
        ["setarch", "-R", sys.executable, "-c", code.replace("SEED", str(seed))], stdout=PIPE, text=True, check=True
    )
    return done.stdout


def test_memory_comes_in_the_same_steps_whatever_was_freed_before() -> None:
    assert len({said(FRESH, seed) for seed in (1, 2, 3)}) == 1


def test_much_free_memory_and_a_libc_without_mallinfo2_change_no_step_of_blocks() -> None:
    much = "held = [bytes(479) for _ in range(160 * 64 * 31)]\nheld = held[:: 64 * 31]\n"
    assert said(much + FRESH, 1) == said(FRESH, 1)
    older = FRESH.replace(
        "take_free_memory()\n", "own._OF_LIBC = (*own._OF_LIBC[:-1], 'none')\ntake_free_memory()\n", 1
    )
    older = older.replace(
        "take_free_memory\n",
        "take_free_memory\nfrom cachegrind_bench.pytest_plugin.cpython import fresh_heap as own\n",
        1,
    )
    (blocks,) = {said(older, seed).rpartition("], [")[2] for seed in (1, 2, 3)}
    assert blocks == said(FRESH, 1).rpartition("], [")[2]


def _major_of_gcc() -> str:
    return "" if shutil.which("gcc") is None else subprocess.run(["gcc", "-dumpversion"], stdout=PIPE, text=True).stdout  # noqa: PLW1510


@pytest.mark.skipif(_major_of_gcc().partition(".")[0].strip() != "12", reason="this is not GCC 12")
def test_the_machine_code_is_that_of_its_source(tmp_path: Path) -> None:
    source = Path(fresh_heap.__file__).with_suffix(".c")
    (command,) = (text.partition("&&") for text in source.read_text().split("\n\n") if text.lstrip().startswith("gcc "))
    for line in command[::2]:
        subprocess.run(shlex.split(line.replace("-c fresh_heap.c", f"-c {source}")), check=True, cwd=tmp_path)
    assert (tmp_path / "fresh_heap.bin").read_bytes() == fresh_heap._TAKE


def test_the_method_cache_is_found_where_it_is() -> None:
    found, size = said(FOUND, 7).splitlines()
    assert found.split() == ["1", "True"], size


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
def test_look_ups_of_a_benchmark_do_not_share_entries_of_the_method_cache(known: bool) -> None:
    # How many share one by chance differs much from one arrangement to another (2 to 94 were seen), so that it is a sum.
    code = LOOK_UPS.replace("def call", "own.remember_types()\nown.gc.freeze()\ndef call") if known else LOOK_UPS
    counts = [tuple(map(int, said(code, seed).split())) for seed in (1, 500, 1000, 1500)]
    before, after = map(sum, zip(*counts, strict=True))
    assert before > 20
    assert after * 20 < before  # look-ups that others hid in each observed call


def test_the_same_look_ups_are_found_wherever_names_and_types_are() -> None:
    (found,) = {said(OBSERVED, seed) for seed in range(1, 3000, 211)}
    assert found.startswith("True")
    assert found.count("name_") == 20 * 5
    assert [name for name in ("own_process", "tolist", "take", "cast") if f"'{name}'" in found] == []  # our own


def test_look_ups_of_names_that_a_call_makes_are_found() -> None:
    assert said(VISITS, 1) == "True\n"


def test_look_ups_in_types_of_a_module_that_was_imported_late_are_found() -> None:
    assert said(LATE, 1) == "True\n"


# Prints whether look-ups in a type that cannot be hashed are found: by a call that comes back from a process that it forked, and by one
# that raises, with how often that was called.
ODD = """
import os
from cachegrind_bench.pytest_plugin.cpython import type_versions as own
class Meta(type):
    def __eq__(self, other):
        return NotImplemented
class Odd(metaclass=Meta):
    attribute = 1
own.remember_types()
def call():
    Odd().attribute
    if os.fork():
        os.wait()
print("attribute" in own.observe_look_ups(call, {call.__code__})["Odd"])
calls = []
def ended():
    calls.append(1)
    Odd().attribute
    raise KeyboardInterrupt
found = own.observe_look_ups(ended, {ended.__code__})
print("attribute" in found["Odd"], len(calls))
own.spread_look_ups(found)
"""


def test_look_ups_are_found_by_odd_calls_in_odd_types() -> None:
    assert said(ODD, 1).splitlines() == ["True", "True 1"]
