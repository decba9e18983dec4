"""What the user wants done around every execution, natively and not measured: --prepare before, --cleanup after."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.interruption import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path


class Hooked(Protocol):
    """A plan, or what becomes one: the commands around its executions, and where they run."""

    @property
    def prepare(self) -> str | None: ...  # noqa: D102
    @property
    def cleanup(self) -> str | None: ...  # noqa: D102
    @property
    def environ(self) -> Mapping[str, str]: ...  # noqa: D102
    @property
    def cwd(self) -> Path: ...  # noqa: D102


@contextlib.contextmanager
def surrounded(plan: Hooked) -> Generator[None]:
    """Run the user's preparation before and clean-up after an execution, whatever becomes of it."""
    try:
        if plan.prepare:
            _native(plan, plan.prepare, "--prepare")
        yield
    except BaseException:
        with contextlib.suppress(MeasurementError), uninterrupted():  # what happened first is what to tell
            _clean_up(plan)
        raise
    _clean_up(plan)


def _clean_up(plan: Hooked) -> None:
    if plan.cleanup:
        _native(plan, plan.cleanup, "--cleanup")


def _native(plan: Hooked, command: str, option: str) -> None:
    failure = native_failure(command, plan.environ, plan.cwd)
    if failure is not None:
        end, words = failure
        raise MeasurementError(f"the {option} command failed with {end}: {command}", hint=words or None)


def native_failure(command: str, environ: Mapping[str, str], cwd: Path) -> tuple[str, str] | None:
    """Run a command line natively and unsealed; return how it failed and its last words, None if it did not.

    MeasurementError if it could not be run at all.
    """
    completed = process.run([command], shell=True, env=environ, cwd=cwd)  # noqa: S604 - the user wrote it for a shell
    if completed.status == 0:
        return None
    words = (completed.stderr or completed.stdout).decode("utf-8", "backslashreplace").strip()
    end = f"signal {completed.signal}" if completed.status is None else f"exit status {completed.status}"
    return end, words[-500:]
