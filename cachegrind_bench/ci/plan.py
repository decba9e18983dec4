"""What a job has to do: the event and the mode as a list of steps. Pure; the steps themselves are elsewhere."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum

import msgspec

from cachegrind_bench.ci.event import Event
from cachegrind_bench.errors import UsageError


class Mode(StrEnum):
    """What the user wants of a job; `auto` follows from the event."""

    AUTO = "auto"
    MEASURE = "measure"
    COMMENT = "comment"
    STORE = "store"
    TREND = "trend"


class Keep(StrEnum):
    """What is left as an artifact; the values are the beginnings of their names.

    A part is measured by one of several jobs; a result by one job, which compares it; what is collected from these is a third
    kind, lest a job that runs again collects what it has left itself.
    """

    NOTHING = ""
    PART = "cg-bench-part-"
    RESULT = "cg-bench-result-"
    COLLECTED = "cg-bench-collected-"
    TREND = "cg-bench-trend-"


class Hold(StrEnum):
    """What fails the job in the end."""

    NOTHING = "nothing"
    FAILURE = "failure"  # a benchmark that failed
    VERDICT = "verdict"  # that, and what the comparison comes to


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps. A result is either measured, or collected from artifacts of the run `collect`.

    `notice` is what may surprise a user.
    """

    measure: bool = False
    collect: int | None = None
    compare: bool = False
    comment: bool = False
    store: bool = False
    trend: bool = False
    keep: Keep = Keep.NOTHING
    hold: Hold = Hold.NOTHING
    notice: str | None = None


def plan(event: Event, mode: Mode, *, shard: bool = False, store: bool = True) -> Plan:
    """Return what to do. `shard`: only a part is measured here; `store`: there is a history.

    UsageError where an event must not be answered at all.
    """
    if event.name == "pull_request_target":
        raise UsageError(
            "pull_request_target is not supported: it gives a token that may write to code from forks",
            hint="measure on pull_request, and comment on workflow_run: examples/workflows/fork-safe",
        )
    if mode is Mode.AUTO:
        mode = {"schedule": Mode.TREND, "workflow_run": Mode.COMMENT}.get(event.name, mode)
    if mode is Mode.TREND:
        return Plan(trend=True, keep=Keep.TREND)
    if mode is Mode.STORE:
        return _storing(event, store=store)
    if mode is Mode.COMMENT:
        return _collecting(event)
    if shard:
        return Plan(measure=True, keep=Keep.PART, hold=Hold.FAILURE)
    writing = mode is Mode.AUTO
    return Plan(
        measure=True,
        compare=True,
        comment=writing and _may_comment(event),
        store=writing and store and event.name == "push" and event.on_default_branch,
        keep=Keep.RESULT,
        hold=_hold(event),
    )


def _hold(event: Event) -> Hold:
    # What has been accepted may cost what it does: it was judged before, or will be by the nightly report.
    return Hold.FAILURE if event.is_accepted else Hold.VERDICT


def _may_comment(event: Event) -> bool:
    return event.pull is not None and not event.pull.fork


def _storing(event: Event, *, store: bool) -> Plan:
    if not store:
        return Plan(notice="nothing is stored: there is no store (store: none)")
    run = event.run
    # Asked for explicitly: a scheduled run, or one started by hand, may store as well.
    ours, source = event.on_default_branch, event.run_id
    if run is not None:
        ours = run.event == "push" and run.head_branch == event.default_branch and run.repository == event.repository
        source = run.id
    if not ours:
        return Plan(notice="nothing is stored: what was measured is not a commit of the default branch")
    return Plan(collect=source, store=True)


def _collecting(event: Event) -> Plan:
    run = event.run
    if run is None:
        comment, keep = _may_comment(event), Keep.COLLECTED
        return Plan(collect=event.run_id, compare=True, comment=comment, keep=keep, hold=_hold(event))
    if run.event != "pull_request":
        return Plan(notice=f"nothing to comment on: the run was for a {run.event}, not a pull request")
    return Plan(collect=run.id, compare=True, comment=True)


def artifact_name(keep: Keep, job: str, index: str, what: str = "") -> str:
    """Return the name of an artifact of this job, the `index`-th of a matrix; artifacts of one run must differ in name.

    `what` is measured, where a job may measure several things.
    """
    # GitHub refuses " : < > | * ? \ / in names. What differs only in these gets different digits.
    digits = f"-{hashlib.sha256(what.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}" if what else ""
    name = "-".join(filter(None, (job or "job", index or "0", what[:80])))
    return keep.value + re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:200] + digits
