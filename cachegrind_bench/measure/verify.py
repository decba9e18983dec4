"""The noise hunter: measures one command again and again, changes one thing at a time, and names what moves its counts.

A command whose plain repeats already differ is not blamed on every axis: first the cause of that is looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.hermetic.launch import Outcome
from cachegrind_bench.measure import axes as all_axes
from cachegrind_bench.measure.axes import AXES, FIRST_CLOCK, Axis, Trial
from cachegrind_bench.measure.command import option_ignoring_seed
from cachegrind_bench.measure.findings import Difference, Finding, Verdict, Verification, difference
from cachegrind_bench.measure.plan import Plan, Progress, execution_of
from cachegrind_bench.measure.run import starts_processes, surrounded, warmed_up, where_it_can_be
from cachegrind_bench.valgrind.options import Tool
from cachegrind_bench.valgrind.runner import Measurement, Runner

# What another path may cost, as the longer text it is: what is promised for a moved checkout. A short program may
# spend a larger share, as the text costs a start-up some thousand instructions however little work follows.
PATH_TRACE = 1e-4
_SHORT_TRACE, _SHORT_IR = 1e-3, 10_000
# A few repeats show only a part of the noise there is; an axis stands out from it where it does this many times more.
_STANDS_OUT = 3
_MORE_REPEATS = 2


def verify(plan: Plan, runner: Runner, progress: Progress, *, axes: Sequence[Axis] = AXES) -> Verification:
    """Hunt noise along these axes; the plain repeat is always measured, as all is compared with it.

    MeasurementError if the command cannot be measured at all.
    """
    return where_it_can_be(plan, progress, partial(_verify, runner=runner, progress=progress, axes=axes))


def _verify(plan: Plan, *, runner: Runner, progress: Progress, axes: Sequence[Axis]) -> Verification:
    hunt = _Hunt(plan=plan, runner=runner, execution=execution_of(plan))
    others = [axis for axis in axes if axis.key != all_axes.REPEAT]
    progress("verify: warm-up, without Valgrind")
    hunt.warm_up()
    progress(f"verify 1 of {len(others) + 1}: {AXES[0].title}")
    findings = [hunt.repeat(AXES[0])]
    for number, axis in enumerate(others, 2):
        progress(f"verify {number} of {len(others) + 1}: {axis.title}")
        findings.append(hunt.examine(axis))
    return Verification(
        command=plan.command.shown,
        tool=hunt.tool.value,
        ir=hunt.plain.accounts.profile.counts().Ir,
        executions=hunt.executions,
        findings=tuple(findings),
        clock_pinned=hunt.clock_explains,
        warnings=tuple(dict.fromkeys((*plan.command.notes, *hunt.plain.accounts.doubts))),
    )


@dataclass(slots=True, kw_only=True)
class _Hunt:
    """The state of the hunt. Other executions are compared with `execution`; `plain` is its measurement."""

    plan: Plan
    runner: Runner
    execution: Execution
    tool: Tool = Tool.CACHEGRIND
    executions: int = 0
    plain: Measurement = field(init=False)
    noise: Difference = field(init=False)
    remaining: Difference = field(init=False)
    clock_explains: bool = False

    def warm_up(self) -> None:
        self.execution, outcome = warmed_up(self.execution, self._execute_natively)
        if starts_processes(outcome):
            self.tool = Tool.CALLGRIND

    def _execute_natively(self, execution: Execution) -> Outcome:
        with surrounded(self.plan):
            return self.runner.warm_up(execution)

    def repeat(self, axis: Axis) -> Finding:
        """Measure the plain execution twice, and look for the cause should it differ."""
        self.plain = self._measure(self.execution)
        if self.plain.accounts.split_needed:
            self.tool = Tool.CALLGRIND
            self.plain = self._measure(self.execution)
        again = [self._measure(self.execution)]
        self.noise = self.remaining = self._differ(self.plain, again)
        if self.noise.identical:
            return Finding(axis, Verdict.HELD, difference=self.noise)
        if self.execution.clock is None and self._unsealed("randomness") is None:
            self._try_clock()
        if not self.clock_explains:
            again += [self._measure(self.execution) for _ in range(_MORE_REPEATS)]
            self.noise = self.remaining = self._differ(self.plain, again)
        cause, advice = self._cause()
        return Finding(axis, Verdict.MOVED, difference=self.noise, cause=cause, advice=advice or axis.advice)

    def examine(self, axis: Axis) -> Finding:
        if axis.key == all_axes.CLOCK and self.clock_explains:
            return self._finding(axis, self.noise)
        why = None if axis.part is None else self._unsealed(axis.part)
        if why is not None:
            return Finding(axis, Verdict.SKIPPED, note=f"cannot be controlled here: {why}")
        with ExitStack() as stack:
            found: Trial | Difference | str = all_axes.prepare(axis, self.plan, self.execution, stack)
            if isinstance(found, Trial):
                try:
                    found = self._try(found)
                except MeasurementError as error:
                    if axis.key == all_axes.CWD:  # it may need a path upwards, which is not noise
                        found = f"it does not work in another directory: {error.message}"
                    else:
                        return Finding(axis, Verdict.FAILED, note=error.message, advice=error.hint)
        if isinstance(found, str):
            return Finding(axis, Verdict.SKIPPED, note=found)
        return self._finding(axis, found)

    def _try(self, trial: Trial) -> Difference | str:
        """Return what a trial showed, or why it shows nothing: where threads took other turns, more than the axis changed."""
        measured = [self._measure(execution) for execution in trial.executions]
        for execution, one in zip(trial.executions, measured, strict=True):
            why = one.outcome.unsealed.get("scheduling")
            if execution.pin_scheduling and why is not None and self._unsealed("scheduling") is None:
                return f"threads took turns as the kernel decides: {why}"
        if trial.reference is None:
            return self._differ(self.plain, measured)
        if trial.unless_plain and (found := self._differ(self.plain, measured)).identical:
            return found
        return self._differ(self._measure(trial.reference), measured)

    def _try_clock(self) -> None:
        """Repeat with the clock pinned: where that brings most of the noise to rest, the clock was its cause."""
        pinned = self.execution._replace(clock=FIRST_CLOCK)
        try:
            first = self._measure(pinned)
            found = self._differ(first, [self._measure(pinned)])
        except MeasurementError:
            return
        if found.identical or found.relative * 10 < self.noise.relative:
            self.clock_explains = True
            self.execution, self.plain, self.remaining = pinned, first, found

    def _cause(self) -> tuple[str | None, str | None]:
        """Return what explains the noise of plain repeats, and what to do about it, as far as that is known."""
        if self.clock_explains:
            rest = "" if self.remaining.identical else " nearly"
            return f"the clock (with it pinned, repeats are{rest} identical)", next(
                axis.advice for axis in AXES if axis.key == all_axes.CLOCK
            )
        why = self._unsealed("randomness")
        if why is not None:
            option = option_ignoring_seed(self.plan.command)
            drawn = f"; Python with {option} ignores PYTHONHASHSEED and draws its hash seed from them" if option else ""
            return f"random bytes, it seems, which cannot be pinned here ({why}){drawn}", _without(option) or (
                "'cg-bench doctor' says how to pin them; or set a fixed seed in the program"
            )
        if self.plain.accounts.doubts:
            return self.plain.accounts.doubts[0], None
        return None, None

    def _finding(self, axis: Axis, found: Difference) -> Finding:
        verdict = self._judge(axis, found)
        option = option_ignoring_seed(self.plan.command)
        cause = note = None
        advice = axis.advice
        if axis.key == all_axes.RANDOM and option and not found.identical:
            cause = f"Python with {option} ignores PYTHONHASHSEED, so its hash seed is drawn from the random stream"
            advice = _without(option) or advice
        elif axis.key == all_axes.HASH_SEED and option:
            note = f"Python with {option} ignores it"
        elif axis.key == all_axes.CLOCK and not found.identical:
            cause = "how much work it does depends on the time it reads"
        if verdict is Verdict.UNCLEAR:
            cause, note = None, "no more than the noise of plain repeats"
        quiet = verdict in (Verdict.HELD, Verdict.UNCLEAR, Verdict.TRACE)
        return Finding(axis, verdict, found, cause, note, None if quiet else advice)

    def _judge(self, axis: Axis, found: Difference) -> Verdict:
        if found.identical:
            return Verdict.HELD
        if axis.key == all_axes.CLOCK and self.clock_explains:
            return Verdict.MOVED
        if not self.remaining.identical and found.relative <= _STANDS_OUT * self.remaining.relative:
            return Verdict.UNCLEAR
        if axis.pinned or (axis.key == all_axes.CLOCK and self.plan.clock is not None):
            return Verdict.DEPENDS
        short = found.relative <= _SHORT_TRACE and abs(found.Ir) <= _SHORT_IR
        is_trace = short or found.relative <= PATH_TRACE
        return Verdict.TRACE if axis.key == all_axes.CWD and is_trace else Verdict.MOVED

    def _measure(self, execution: Execution) -> Measurement:
        self.executions += 1
        with surrounded(self.plan):
            return self.runner.measure(execution, self.plan.collected, self.tool)

    def _differ(self, reference: Measurement, others: Sequence[Measurement]) -> Difference:
        return difference(reference.accounts.profile, [other.accounts.profile for other in others], self.plan.model)

    def _unsealed(self, part: str) -> str | None:
        """Return why a part of the seal is not in place, None if it is."""
        outcome = self.plain.outcome
        missing = "no seccomp" if part == "randomness" and outcome.images is None else None
        return outcome.unsealed.get(part, missing)


def _without(option: str | None) -> str | None:
    """Return how to do without an option of Python that makes it ignore the hash seed."""
    if option is None:
        return None
    instead = "replace -I by -s -P" if option == "-I" else "leave -E out"
    return f"{instead}, and PYTHONHASHSEED=0 of the seal holds"
