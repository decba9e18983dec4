"""--verbose says what is done: which commands are run, and how a program is executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.valgrind.conftest import CgBench


def test_commands_and_executions_are_said_on_request(cg_bench: CgBench) -> None:
    (cg_bench.cwd / "cg-bench.toml").write_text("warmup = 0\n", encoding="utf-8")
    asked = cg_bench.run("/bin/true", options=["--verbose"])
    lines = [line.removeprefix("cg-bench: ") for line in asked.stderr.splitlines()]
    assert lines[0] == f"read {cg_bench.cwd / 'cg-bench.toml'}"
    assert any(line.startswith("uses Valgrind 3.") for line in lines)
    (execution,) = (line for line in lines if line.startswith("executes "))
    assert "--tool=cachegrind" in execution
    assert "/bin/true in " in execution
    assert any(line.startswith("ended after ") for line in lines)
    silent = cg_bench.run("/bin/true")
    assert "executes" not in silent.stderr
