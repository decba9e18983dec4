"""One run for github-action-benchmark's tool customSmallerIsBetter; and back, also from what it keeps: data.js, or JSON.

The action keeps name, value, unit and a text, `extra`, which it shows. Ours carries all that is needed to read a run back:
run, commit, keys, counts. Other tools' entries have times of their own kind, never Cachegrind's counts.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, unquote

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.history.formats import fields
from cachegrind_bench.model.history import Point, Snapshot
from cachegrind_bench.model.result import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

UNIT = "score"

_PAGE = re.compile(r"\s*window\.BENCHMARK_DATA\s*=", re.ASCII)
_WORD = re.compile(r"([A-Za-z0-9_]+)=(\S*)", re.ASCII)
_HINT = "'cg-bench history export --format github-action-benchmark' writes what can be read back"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that were read, and how many entries are of other tools."""

    runs: list[Snapshot]
    foreign: int


def write(run: Snapshot) -> str:
    """Return the entries of each benchmark that went well, as a JSON list."""
    entries = [
        {"name": point.id, "unit": UNIT, "value": point.score.value, "extra": _extra(run, point)}
        for point in run.points
        if point.score is not None
    ]
    return json.dumps(entries, indent=2) + "\n"


def read(text: str, name: str) -> Found:
    """Return the runs of a list of entries, of the page's data.js, or of the same without JavaScript around it.

    FileFormatError if none of the entries are ours, or one of them is damaged.
    """
    page = _PAGE.match(text)
    try:
        document: Any = json.loads(text[page.end() :].strip().removesuffix(";") if page else text)
        entries = list(_of_page(document) if page or isinstance(document, dict) else _list(document, "the file"))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"no data of github-action-benchmark: {error}"[:300], path=name, hint=_HINT) from error
    ours = [entry for entry in entries if _is_ours(entry)]
    if entries and not ours:
        units = sorted({_unit(entry) for entry in entries})
        raise FileFormatError(
            f"none of its {len(entries)} entries is a score with Cachegrind's counts: their units are {', '.join(units[:5])}",
            path=name,
            hint=_HINT,
        )
    return Found(runs=_runs(ours, name), foreign=len(entries) - len(ours))


def _extra(run: Snapshot, point: Point) -> str:
    counts = {} if point.counts is None else point.counts.as_dict()
    of_run = {
        "model": point.score.model if point.score else "",
        "key": point.key,
        "environment": run.env_key,
        "run": run.uid,
        "created_at": run.created_at,
        "cg_bench": run.tool_version,
    }
    commit = run.commit
    of_commit: dict[str, str] = {}
    if commit is not None:
        of_commit = {"commit": commit.sha, "committed_at": commit.committed_at, "dirty": str(commit.dirty).lower()}
        of_commit |= {"parent": commit.parent} if commit.parent else {}
        of_commit |= {"branch": commit.branch} if commit.branch else {}
    lines = [{event: str(count) for event, count in counts.items()}, of_run, of_commit]
    return "\n".join(
        " ".join(f"{word}={quote(text, safe='+:/')}" for word, text in items.items()) for items in lines if items
    )


def _of_page(document: Any) -> Iterator[Any]:
    """Return the entries of all suites and commits of a page."""
    suites = _object(_object(document, "the page").get("entries"), "entries")
    for suite, pushes in suites.items():
        for push in _list(pushes, f"the suite {suite[:40]!r}"):
            yield from _list(_object(push, "a push").get("benches"), "benches")


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not an object")  # noqa: TRY004 - of one kind with all that can be wrong with the file
    return cast("dict[str, Any]", value)


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} is not a list")  # noqa: TRY004
    return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _unit(entry: Any) -> str:
    return repr(cast("dict[str, Any]", entry).get("unit"))[:30] if isinstance(entry, dict) else "none"


def _is_ours(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    found = cast("dict[str, Any]", entry)
    return found.get("unit") == UNIT and isinstance(found.get("extra"), str) and " environment=" in found["extra"]


def _runs(entries: list[dict[str, Any]], name: str) -> list[Snapshot]:
    """Return the runs of these entries; one run may have been handed over in parts, or twice."""
    runs: dict[str, Snapshot] = {}
    points: dict[str, dict[str, Point]] = {}
    for number, entry in enumerate(entries, 1):
        try:
            run, point = _entry(entry)
            _same(runs.setdefault(run.uid, run), run, f"run {run.uid}")
            _same(points.setdefault(run.uid, {}).setdefault(point.id, point), point, f"this name, and of run {run.uid}")
        except (ValueError, KeyError, UsageError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            which = f"entry {number} of those that are scores ({str(entry.get('name'))[:80]!r})"
            raise FileFormatError(f"{which}: {what}", path=name, hint=_HINT) from error
    return [replace(run, points=tuple(points[uid].values())) for uid, run in runs.items()]


def _same(one: object, other: object, what: str) -> None:
    if one != other:
        raise ValueError(f"another entry disagrees about {what}")


def _entry(entry: dict[str, Any]) -> tuple[Snapshot, Point]:
    found = {word: unquote(text, errors="strict") for word, text in _WORD.findall(entry["extra"])}
    if not isinstance(entry.get("name"), str) or type(entry.get("value")) not in {int, float}:
        raise ValueError("its name is not a text, or its value is not a number")
    run = Snapshot(
        uid=fields.uid(found["run"]),
        tool_version=found["cg_bench"],
        created_at=fields.time(found["created_at"]),
        commit=fields.commit(
            found.get("commit", ""),
            found.get("parent", ""),
            found.get("branch", ""),
            found.get("dirty", ""),
            found.get("committed_at", ""),
        ),
        env_key=fields.environment_key(found["environment"]),
        points=(),
    )
    counts = fields.counts(found)
    point = Point(
        id=entry["name"],
        key=found["key"],
        status=Status.OK,
        counts=counts,
        score=fields.score(found["model"], entry["value"], counts),
    )
    return run, point
