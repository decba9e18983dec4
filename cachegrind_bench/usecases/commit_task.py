"""Measuring one commit on whichever machine this is: what is ordered, and what is answered.

Runs in a thread here, or on a worker that knows nothing but the order. Must not know which commits there are.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.scratch import scratch
from cachegrind_bench.log import heard_by
from cachegrind_bench.measure.probe import probe
from cachegrind_bench.measure.session import SCRATCH_BASE, default_cpu, identify
from cachegrind_bench.model.codec import encode
from cachegrind_bench.model.result import comparability_key
from cachegrind_bench.usecases.last_run import cache_folder
from cachegrind_bench.usecases.measurement import MeasureRequest, valgrind_setup_of
from cachegrind_bench.usecases.selection import SelectRequest
from cachegrind_bench.usecases.worktrees import Overlay, Run, Worktree
from cachegrind_bench.vcs.revisions import Repository
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Environment, Result

# Places for worktrees, far from those of programs that are measured.
_FIRST_PLACE = 50
_CARGO = "CARGO_TARGET_DIR"
_LINES = 12  # of why a commit failed
# Parts of the seal that counts depend on, and the place, without which commits cannot be measured side by side.
PLACE = "place"
PARTS = "environment", "randomness", "cpu", "copies", PLACE


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A commit to measure by `cg-bench run` with these words, in the folder `within` of it.

    `sharing`: others are measured on this machine at the same time, each on a CPU of its own. `numbers` are those of iterations
    that other commits count.
    """

    repository: Path
    sha: str
    within: str
    words: tuple[str, ...]
    select: SelectRequest
    overlay: Overlay
    sharing: bool
    numbers: Mapping[str, int] = {}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of a result file, or why there is none, and from which machine."""

    machine: str
    result: bytes | None
    failure: str | None


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine would measure under: results of machines of one `key` may be compared.

    `fields` are those the key is made of, `unsealed` the parts of the seal that it does not have, with the reasons.
    """

    name: str
    key: str
    fields: Mapping[str, str]
    environment: Environment
    unsealed: Mapping[str, str]


def difference(one: Machine, other: Machine) -> str:
    """Return in which fields two machines differ."""
    names = [
        name
        for name in sorted(one.fields.keys() | other.fields.keys())
        if one.fields.get(name) != other.fields.get(name)
    ]
    return ", ".join(
        f"{name} is {other.fields.get(name, 'unknown')}, not {one.fields.get(name, 'unknown')}" for name in names
    )


def measure(order: Order, environ: Mapping[str, str], run: Run, waiting: Waiting | None = None) -> Answer:
    """Measure a commit here; `waiting` says what of git is waited for. A commit that cannot be measured is an answer, too."""

    def quietly(folder: Path, environ: Mapping[str, str], words: Sequence[str]) -> Result:
        with heard_by(lambda _text: None):  # whoever ordered this commit says how it ended
            return run(folder, environ, words)

    allowed = os.sched_getaffinity(0)
    result = failure = None
    with scratch(SCRATCH_BASE, first=_FIRST_PLACE) as slot:
        if order.sharing:  # of this thread alone, and of what it starts
            os.sched_setaffinity(0, {default_cpu(slot.slot)})
        place = Worktree(
            repository=Repository(order.repository, _with_own_target(environ, slot.slot), waiting or Waiting()),
            folder=slot.path,
            within=order.within,
            run=quietly,
            select=order.select,
            overlay=order.overlay,
            results=None if (cache := cache_folder(environ)) is None else cache / "results",
            numbers=dict(order.numbers),
        )
        try:
            result = encode(place.measure(order.sha, order.words))
        except MeasurementError as error:
            why = error.message.removeprefix(f"{order.sha[:12]} could not be measured: ")  # each says so by itself
            failure = "\n".join((why, *(error.hint or "").splitlines()[-_LINES:]))
        finally:
            os.sched_setaffinity(0, allowed)
    return Answer(machine=socket.gethostname(), result=result, failure=failure)


def _with_own_target(environ: Mapping[str, str], slot: int) -> Mapping[str, str]:
    """Return these variables, but for a folder of Cargo's that this place has to itself: others build the same names meanwhile."""
    target = environ.get(_CARGO, "")
    return {**environ, _CARGO: f"{target}/cg-bench.{slot}"} if os.path.isabs(target) else environ


def describe(request: MeasureRequest) -> Machine:
    """Return what this machine would measure under. MeasurementError without Valgrind."""
    found = valgrind_setup_of(request).environment
    with scratch(SCRATCH_BASE, first=_FIRST_PLACE) as slot:
        unsealed = probe(slot, request.environ, default_cpu(slot.slot))
    libc = identify("/bin/sh", request.environ).key_fields.get("libc", "")
    parts = {f"seal.{part}": "unavailable" if part in unsealed else "pinned" for part in PARTS if part != PLACE}
    fields = {**found.fields, "libc": libc, **parts}
    return Machine(
        name=socket.gethostname(),
        key=comparability_key(fields),
        fields=fields,
        environment=found,
        unsealed=unsealed,
    )
