"""Logs of compiled code: what Node and Java write."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.model.call_graph import Calls, every
from cachegrind_bench.valgrind.callgrind_file import parse_callgrind
from cachegrind_bench.valgrind.code_log import CompiledCode, read_code

if TYPE_CHECKING:
    from pathlib import Path

LOG = rb"""v8-version,11,3,244,8,-node.38,0
code-creation,JS,10,5,0x16ac0000,64,work file:///w/a%20b.mjs:1:21,0xa0,~
code-creation,JS,10,5,0x16ac0040,64, file:///w/a%20b.mjs:6:1,0xb0,~
sfi-move,0xa0,0xc0
code-creation,JS,13,5,0x1000,256, file:///w/a%20b.mjs:6:1,0xb0,*
code-source-info,0x1000,7,60,72,C16O60C32O45I0C48O30I1C64O62,F0O66FO66,S0xc0
"""
ANONYMOUS, WORK = ("/w/a b.mjs", "(anonymous)"), ("/w/a b.mjs", "work")


def compiled(log: bytes) -> CompiledCode:
    code = CompiledCode()
    code.read(log.splitlines(keepends=True))
    return code


def test_an_instruction_is_of_the_function_that_was_inlined_there() -> None:
    code = compiled(LOG)
    assert code.at(0x1000) == (*ANONYMOUS, -1)
    assert code.at(0x1010) == (*ANONYMOUS, 60)
    assert code.at(0x102F) == (*WORK, 45)
    assert code.at(0x1030) == (*ANONYMOUS, 30)  # inlined from what has no number
    assert code.at(0x10FF) == (*ANONYMOUS, 62)
    assert code.at(0x1100) is code.at(0xFFF) is code.at(0) is None
    assert code.at(0x16AC0000) is None  # bytecode


def test_the_last_code_at_an_address_holds() -> None:
    code = compiled(LOG + b"code-creation,RegExp,3,6,0x1080,16,[a-z]\\x2C+\ncode-move,0x1080,0x2000\n")
    assert code.at(0x1010) is None
    assert code.at(0x200F) == ("???", "[a-z],+", -1)
    assert compiled(LOG + b"code-move,0x1000,0x1040\n").at(0x1060) == (*WORK, 45)


@pytest.mark.parametrize(
    ("text", "file", "name"),
    [
        (b"get x /a b/c.cjs:1:2", "/a b/c.cjs", "get x"),
        (b"emit node:events:4:10", "node:events", "emit"),
        (b" evalmachine.<anonymous>:1:1", "evalmachine.<anonymous>", "(anonymous)"),
        (b"f :1:1", "???", "f"),
        (b"", "???", "(anonymous)"),
    ],
)
def test_a_function_has_a_name_and_a_file(text: bytes, file: str, name: str) -> None:
    assert compiled(b"code-creation,JS,13,5,0x1000,16,%b,0xa0,*\n" % text).at(0x1000) == (file, name, -1)


@pytest.mark.parametrize(
    "line",
    [
        b"code-source-info,0x1000,7,60,72,C0O1I9,F8O1,S0x1",
        b"code-source-info,0x1000,7,60,72,C0O1I0,F8O1,S0x1",
        b"code-source-info,0x3000,7,60,72,C0O1,,",
        b"code-source-info,0x1000,7,60,72,xyz,F,0x",
        b"code-source-info,0x1000,7,60,72,C0O1I0,F8O1,S",
        b"code-move,0x9,0x1000",
        b"\xff,,,",
    ],
)
def test_whatever_else_is_in_a_log_is_passed_over(line: bytes) -> None:
    assert compiled(b"code-creation,JS,13,5,0x1000,16,f /a.js:1:1,0xa0,*\n" + line).at(0x1000) in {
        ("/a.js", "f", -1),
        ("/a.js", "f", 1),
    }


PART = b"""version: 1
pid: 12
cmd:  node a.mjs
part: 1

desc: Trigger: Program termination

positions: instr line
events: Ir

ob=(1) node
fl=(1) ???
fn=(1) Builtins_Call
0x900 0 3
cob=(2) ???
cfn=(2) 0x0000000000001000
calls=1 0x1000 0
+4 * 100

ob=(2)
fn=(2)
0x1000 0 5
+32 0 70
+32 0 20
* * 5

totals: 103
"""


SOURCE = "export function work(n) {\n  // \N{EURO SIGN}.\n  return n;\n}\n\n() => work(1)"


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.mjs").write_text(SOURCE, encoding="utf-8")
    code, file = compiled(b""), str(tmp_path / "a.mjs")
    assert [code.line((file, "f", place)) for place in (-1, 0, 24, 25, 32, 33, len(SOURCE))] == [0, 1, 1, 1, 2, 2, 6]
    assert [code.line((name, "f", 1)) for name in (f"{file}x", str(tmp_path), "node:os", "???")] == [0, 0, 0, 0]


def test_costs_of_compiled_code_are_booked_by_instruction(tmp_path: Path) -> None:
    (tmp_path / "out.12.1").write_bytes(PART)
    (tmp_path / "a b.mjs").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "isolate-0x2e9b-12-code.log").write_bytes(LOG.replace(b"/w/", os.fsencode(f"{tmp_path}/")))
    code = read_code(tmp_path, 12)
    (part,) = parse_callgrind(tmp_path / "out.12.1", lines=True, code=code)
    rows = {(row.file, row.name): row.counts for row in part.profile.functions}
    file = f"{tmp_path}/a b.mjs"
    assert rows == {("???", "Builtins_Call"): (3,), (file, "(anonymous)"): (30,), (file, "work"): (70,)}
    assert {(row.name, row.line) for row in part.profile.lines} >= {("work", 3), ("(anonymous)", 6)}
    (part,) = parse_callgrind(tmp_path / "out.12.1", calls=every, code=code)
    assert part.calls is not None
    assert [(*pair[1][1:], calls) for pair, calls in part.calls.calls.items()] == [(file, "(anonymous)", Calls(1, 100))]
    assert read_code(tmp_path, 13) is None


def test_methods_that_a_jvm_compiled_are_of_the_file_of_their_outer_class(tmp_path: Path) -> None:
    start = b"<nmethod compile_id='7' compiler='c1' level='1' entry='0x0000000000001080' size='256' "
    rest = b"relocation_offset='352' method='a.b.Outer$In &lt;init&gt; (I)V' bytes='5' count='0'/>\n"
    log = start + b"address='0x0000000000001000' " + rest
    again = start + b"address='0x0000000000002000' " + rest.replace(b"&lt;init&gt;", b"size")
    odd = [
        start + b"\n",
        b"<nmethod " * 9999,
        b"<task compile_id='7' method='a.b.C d ()V'/>\n",
        log.replace(b"256", b"9" * 99),
    ]
    (tmp_path / "pid12-code.log").write_bytes(b"<?xml version='1.0'?>\n" + log + again + b"".join(odd))
    (tmp_path / "pid112-code.log").write_bytes(log.replace(b"Outer", b"Other"))
    code = read_code(tmp_path, 12)
    assert code is not None
    assert code.at(0x10FF) == ("a/b/Outer.java", "a.b.Outer$In.<init>", -1)
    assert code.at(0x2000) == ("a/b/Outer.java", "a.b.Outer$In.size", -1)
    assert code.at(0x1100) is code.at(0x0FFF) is None


@pytest.mark.parametrize(
    ("method", "function"),
    [
        (b"L$$Lambda$1/0x00007f14ec000a08 apply (I)I", ("L.java", "L$$Lambda.apply")),
        (b"a.L$$Lambda/0x00007f14ec000a08 apply (I)I", ("a/L.java", "a.L$$Lambda.apply")),
        (b"a.Made/0x00007f14ec000a08 call ()V", ("a/Made.java", "a.Made.call")),
        (b"bench/Sums work ()I", ("bench/Sums.java", "bench.Sums.work")),
        (b"a &#" + b"1" * 5000 + b"; ()V", ("a.java", f"a.&#{'1' * 5000};")),
    ],
)
def test_names_of_methods_do_not_depend_on_how_many_lambdas_came_before(
    method: bytes, function: tuple[str, str]
) -> None:
    code = compiled(b"<nmethod size='16' address='0x1000' method='" + method + b"'/>\n")
    assert code.at(0x1000) == (*function, -1)
