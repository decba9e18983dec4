"""Made-up series for tests of what is found in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cachegrind_bench.history.findings import find
from cachegrind_bench.history.values import Reading, Series
from cachegrind_bench.model.result import CommitNote
from tests.unit.comparing import counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cachegrind_bench.history.values import Finding

KEY = "0123456789ab"
START = datetime(2026, 1, 1, tzinfo=UTC)


def sha(number: int) -> str:
    """Return the sha of the commit at this place; two of them differ in their first digits."""
    return f"{number + 1:07x}{0:033x}"


def line(length: int, *, hours: int = 48) -> list[CommitNote]:
    """Return so many commits, each so many hours after the one before."""
    return [
        CommitNote(
            sha=sha(number),
            parents=(sha(number - 1),) if number else (),
            committed_at=f"{START + number * timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}",
            author="A",
            subject=f"commit {number}",
        )
        for number in range(length)
    ]


def series(
    values: Sequence[int], *, at: Iterable[int] | None = None, keys: Sequence[str] | None = None, name: str = "sieve"
) -> Series:
    """Return readings of these values, at these places on the line or at all from the first."""
    places = list(at) if at is not None else list(range(len(values)))
    return Series(
        id=name,
        model="ir",
        readings=tuple(
            Reading(
                index=place,
                sha=sha(place),
                key=keys[number] if keys else KEY,
                value=value,
                counts=counts(max(value, 1)),
                created_at="2026-06-01T00:00:00Z",
                uid=f"{number:016x}",
            )
            for number, (value, place) in enumerate(zip(values, places, strict=True))
        ),
    )


def found(values: Sequence[int] | Series, **changes: Any) -> tuple[Finding, ...]:
    """Return what is found in these values over a line that ends with them."""
    whole = values if isinstance(values, Series) else series(values)
    commits = changes.pop("commits", None) or line(whole.readings[-1].index + 1 if whole.readings else 1)
    return find(whole, commits, **changes)


def brief(findings: Iterable[Finding]) -> list[tuple[str, str, int]]:
    """Return kind, state and place of each."""
    return [(finding.kind.value, finding.state.value, finding.index) for finding in findings]
