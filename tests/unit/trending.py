"""Made-up histories for the trend report, the same every time: steps, a creep, noise, failures, another environment."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cachegrind_bench.history.series import SeriesSet
from cachegrind_bench.history.trend import trend
from cachegrind_bench.history.values import Differing, Finding, Kind, LeftOut, Provenance, Reading, Series, State
from cachegrind_bench.model.metrics import DEFAULT_MODEL, Counts
from cachegrind_bench.model.result import CommitNote, Release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.history.values import Trend

KEY, OTHER_KEY = "5d3f0a91c2e7", "b81c44e0a6d2"
START = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
AUTHORS = ("Ada Lovelace", "Grace Hopper", "Kateryna Yushchenko", "Adele Goldberg", "Frances Allen")
SUBJECTS = (
    "Parse headers without a copy",
    "Cache the compiled patterns",
    "Refuse paths that leave the archive",
    "Tests for empty input",
    "Update the lexer's table",
    "Return early where nothing changed",
    "Documentation of the wire format",
    "Sort keys once, not per row",
)
PROVENANCE = Provenance(
    title="wordcraft",
    created_at="2026-05-08T03:00:00Z",
    tool_version="0.5.0",
    store="git:cg-bench-data@origin",
    branch="main",
    commit_url="https://example.org/wordcraft/commit/{sha}",
    notes=(("Smallest effect", "0.3 %"),),
)


def sha(number: int) -> str:
    return hashlib.sha256(f"commit {number}".encode()).hexdigest()[:40]


def notes(length: int) -> tuple[CommitNote, ...]:
    """A line of commits, about four a day, with weekends off."""
    dice, time, found = random.Random(1), START, []
    for number in range(length):
        time += timedelta(minutes=dice.randrange(40, 600))
        if time.weekday() > 4:
            time += timedelta(days=2)
        found.append(
            CommitNote(
                sha=sha(number),
                parents=(sha(number - 1),) if number else (),
                committed_at=time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                author=dice.choice(AUTHORS),
                subject=f"{dice.choice(SUBJECTS)} ({number})",
            )
        )
    return tuple(found)


def counts(ir: int, misses: int = 1000) -> Counts:
    """Counts of a program of so many instructions that misses its first cache so often, and RAM a fifth of that."""
    ram = misses // 5
    return Counts.of([ir, misses // 10, ram // 10, ir // 4, misses, ram, ir // 8, misses // 4, ram // 8])


def reading(index: int, ir: int, *, misses: int = 1000, key: str = KEY) -> Reading:
    found = counts(ir, misses)
    return Reading(
        index=index,
        sha=sha(index),
        key=key,
        value=DEFAULT_MODEL.score(found),
        counts=found,
        created_at="2026-05-08T02:00:00Z",
        uid=f"{index:016x}",
    )


def series(
    name: str, irs: Sequence[int | None], *, failed: Sequence[int] = (), keys: dict[int, str] | None = None
) -> Series:
    """A series of these instruction counts, None where it was not measured; `keys` from these indices on."""
    key, found = KEY, []
    for index, ir in enumerate(irs):
        key = (keys or {}).get(index, key)
        if ir is not None and index not in failed:
            found.append(reading(index, ir, misses=ir // 2000, key=key))
    return Series(id=name, model=DEFAULT_MODEL.name, readings=tuple(found), failed=tuple(failed))


def finding(of: Series, index: int, kind: Kind = Kind.REGRESSION, state: State = State.OPEN, **more: object) -> Finding:
    """A finding at the reading of this index, from the one before it to it."""
    place = [item.index for item in of.readings].index(index)
    before, after = of.readings[max(0, place - 1)], of.readings[place]
    fields: dict[str, object] = {
        "id": hashlib.sha256(f"{of.id} {index} {kind}".encode()).hexdigest()[:12],
        "kind": kind,
        "state": state,
        "benchmark": of.id,
        "key": after.key,
        "before": before.value,
        "after": after.value,
        "suspects": tuple(sha(number) for number in range(before.index + 1, index + 1)) or (after.sha,),
        "last_good_sha": before.sha,
        "index": index,
        "confirmed": True,
    }
    return Finding(**{**fields, **more})  # type: ignore[arg-type]


def small(length: int = 40) -> Trend:
    """A report with one of everything: what tests look into by name."""
    found, findings = _one_of_everything(length)
    return arranged(
        found, findings, length, releases=(Release(name="v1.0", sha=sha(5)), Release(name="v1.1", sha=sha(20)))
    )


def _one_of_everything(length: int) -> tuple[list[Series], list[Finding]]:
    last = length - 1
    base = 2_000_000
    new = series("parse/json[large]", [base * (108 if at >= last - 1 else 100) // 100 for at in range(length)])
    opened = series(
        "parse/xml", [None if at in {11, 12} else base * (104 if at > 12 else 100) // 100 for at in range(length)]
    )
    better = series("render/table", [base * (90 if at >= last else 100) // 100 for at in range(length)])
    creep = series("search/index", [base + base * at // 800 for at in range(length)])
    back = series("search/query", [base * (105 if 15 <= at < 25 else 100) // 100 for at in range(length)])
    accepted = series("startup", [base * (120 if at >= 18 else 100) // 100 for at in range(length)])
    dice = random.Random(2)
    noisy = series("threads", [base + dice.choice((0, 90_000)) for _ in range(length)])
    failing = series("zip/deflate", [base] * length, failed=(last - 1, last))
    failed_before = series("zip/inflate", [base] * length, failed=(7,))
    moved = series(
        "unicode/fold", [base * (97 if at >= 22 else 100) // 100 for at in range(length)], keys={22: OTHER_KEY}
    )
    missing = series("unicode/upper", [base] * (length - 5))
    found = [new, opened, better, creep, back, accepted, noisy, failing, failed_before, moved, missing]
    findings = [
        finding(new, last - 1, state=State.NEW, confirmed=True),
        finding(opened, 13),
        finding(better, last, Kind.IMPROVEMENT, State.NEW, confirmed=False),
        finding(creep, last, Kind.CREEP, before=creep.readings[5].value, suspects=(sha(last),)),
        finding(back, 15, state=State.RECOVERED, recovered_sha=sha(25)),
        finding(accepted, 18, state=State.ACKNOWLEDGED, reason="checks signatures at start"),
        finding(noisy, last, Kind.UNSTABLE),
    ]
    return found, findings


def large(benchmarks: int = 50, commits: int = 500, *, noise: int = 1000, seed: int = 3) -> Trend:
    """A report of the size that pages are made for; every count differs a little, by a share of 1/`noise` up or down."""
    dice = random.Random(seed)
    found, findings = [], []
    for number in range(benchmarks):
        level = dice.randrange(1_000_000, 900_000_000)
        step = dice.randrange(commits // 10, commits) if number % 4 == 0 else commits
        irs = [
            round((level * 1.04 if at >= step else level) * (1 + dice.uniform(-1, 1) / noise)) for at in range(commits)
        ]
        item = series(f"package.module_{number % 7}/test_function_number_{number}[size=large]", irs)
        found.append(item)
        if step < commits:
            findings.append(finding(item, step, state=State.NEW if step > commits - 30 else State.OPEN))
    tags = tuple(Release(name=f"v1.{at // 60}", sha=sha(at)) for at in range(30, commits, 60))
    return arranged(found, findings, commits, releases=tags)


def arranged(
    found: Sequence[Series],
    findings: Sequence[Finding],
    length: int,
    *,
    releases: Sequence[Release] = (),
    provenance: Provenance = PROVENANCE,
    first: int = 0,
    line: Sequence[CommitNote] | None = None,
) -> Trend:
    """A report on these series over a line of so many commits."""
    left_out = LeftOut(dirty=3, elsewhere=2, without_commit=1, differing=(Differing(benchmark="threads", sha=sha(9)),))
    everything = SeriesSet(line=tuple(line or notes(length)), series=tuple(found), left_out=left_out)
    return trend(everything, findings, provenance, releases=releases, first=first)
