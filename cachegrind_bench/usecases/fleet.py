"""What each worker of a fleet has, and which of them measure alike. Knows machines; must not know how they are reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from cachegrind_bench.model.text import counted, joined
from cachegrind_bench.render.table import Report, Section
from cachegrind_bench.usecases.commit_task import PARTS, Machine


def report(found: Mapping[str, Machine | str], threads: Mapping[str, int]) -> Report:
    """Return the workers by those that measure alike, most of them first; and why others cannot measure."""
    usable = {name: item for name, item in found.items() if isinstance(item, Machine)}
    first = {item.key: item for item in reversed(usable.values())}
    votes = Counter(item.key for item in usable.values())
    keys = sorted(votes, key=lambda key: (-votes[key], list(first)[::-1].index(key)))
    rows = [
        (str(number), name, item.name, *_has(item, threads.get(name, 1)))
        for number, key in enumerate(keys, start=1)
        for name, item in usable.items()
        if item.key == key
    ]
    warnings = [
        f"those of set {number} cannot be compared with set 1: {difference(first[keys[0]], first[key])}"
        for number, key in enumerate(keys[1:], start=2)
    ]
    warnings += [f"{name} cannot measure: {item}" for name, item in found.items() if isinstance(item, str)]
    warnings += [
        f"{name}: not sealed is {part}: {item.unsealed[part]}"
        for name, item in usable.items()
        for part in _unsealed(item)
    ]
    columns = "set", "worker", "host", "CPUs", "at once", "Valgrind", "C library", "Python", "sealed"
    section = Section(columns=columns, rows=tuple(rows), shrinkable=(2, 1))
    alike = joined([str(votes[key]) for key in keys]) or "none"
    title = f"{counted(len(found), 'worker')}: {alike} {'measure alike' if keys else 'can measure'}"
    return Report(title=title, sections=(section,) if rows else (), warnings=tuple(warnings))


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


def _has(machine: Machine, threads: int) -> tuple[str, ...]:
    info, fields = machine.environment.info, machine.fields
    values = (info.get("cpus_online"), threads, fields.get("valgrind"), info.get("libc"), info.get("python"))
    sealed = f"not {joined(_unsealed(machine))}" if _unsealed(machine) else "whole"
    return (*(str("" if value is None else value) for value in values), sealed)


def _unsealed(machine: Machine) -> list[str]:
    return [part for part in PARTS if part in machine.unsealed]  # others vary with what else is at work
