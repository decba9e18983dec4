"""What one execution cost more than another one, which did the same but for some iterations."""

from __future__ import annotations

from cachegrind_bench.model.metrics import FunctionCost, Profile
from cachegrind_bench.model.result import ProcessCost
from cachegrind_bench.valgrind.processes import Accounts


def difference(more: Accounts, less: Accounts) -> Accounts:
    """Return what `more` cost and `less` did not, by function. What went down is left out, as nothing costs less than nothing."""
    before = {(row.file, row.name): row.counts for row in less.profile.functions}
    none = (0,) * len(more.profile.events)
    functions: list[FunctionCost] = []
    for row in more.profile.functions:
        old = before.get((row.file, row.name), none)
        counts = tuple(max(0, now - then) for now, then in zip(row.counts, old, strict=True))
        if any(counts):
            functions.append(FunctionCost(row.file, row.name, counts))
    profile = Profile(events=more.profile.events, functions=tuple(functions), lines=())
    processes = (ProcessCost(executable=more.processes[0].executable, counts=profile.counts()),)
    return Accounts(profile=profile, processes=processes, doubts=more.doubts, split_needed=False, sections=1)
