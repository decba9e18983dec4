"""Applies the rules to a project, measures each edit as it is and with a planted slowdown, and notes what the comparison says."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from benchmarks.robustness.edit import proposals
from benchmarks.robustness.project import CannotRunError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.robustness.edit import Edit
    from benchmarks.robustness.project import Project

TRIES = 12
PLANTED = (0, 1, 2)


class Journal:
    """A file of one JSON line per benchmark and measurement: what is in it is not measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # killed while it wrote
            path.write_text(whole)
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]
        self._done = {(row["label"], row["project"], row["edit"], row["planted"]) for row in self.rows}

    def has(self, label: str, project: str, edit: str, planted: int) -> bool:
        """Tell whether this was measured."""
        return (label, project, edit, planted) in self._done

    def taken(self, project: str, rule: str, number: int) -> set[str]:
        """Return what this rule did to the project at lower numbers."""
        lower = {f"{rule}-{each}" for each in range(number)}
        return {row["what"] for row in self.rows if row["project"] == project and row["edit"] in lower}

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Append the rows of one measurement, in one write."""
        with self.path.open("a") as file:
            file.write("".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))
        self.rows += rows
        self._done |= {(row["label"], row["project"], row["edit"], row["planted"]) for row in rows}


def edits_of(project: Project) -> list[tuple[str, int]]:
    """Return the rules in the order of their numbers: each rule once, then those that are applied again."""
    numbered = [(rule, number) for rule, (_make, times) in project.rules.items() for number in range(times)]
    return sorted(numbered, key=lambda item: item[1])


def find_edit(project: Project, rule: str, number: int, taken: set[str]) -> Edit | None:
    """Return the first proposal that changes no result and was not taken before, with the project in that state."""
    for count, edit in enumerate(proposals(project.rules[rule][0], project.source, f"{project.name} {rule} {number}")):
        if count == TRIES:
            break
        if edit.what in taken:
            continue
        try:
            project.apply(edit, {})
        except (CannotRunError, SyntaxError):
            continue
        if project.innocent():
            return edit
    return None


class Runner:
    """Measures one project after the other into the journal."""

    def __init__(
        self,
        *,
        journal: Journal,
        label: str,
        work: Path,
        planted: tuple[int, ...],
        limit: int | None,
        rules: Sequence[str],
    ) -> None:
        self._journal = journal
        self._label = label
        self._work = work
        self._planted = planted
        self._limit = limit
        self._rules = rules

    def missing(self, project: Project) -> list[tuple[str, int, int]]:
        """Return what is to be measured: rule, number and planted percent."""
        return [
            (rule, number, percent)
            for rule, number in edits_of(project)[: self._limit]
            for percent in self._planted
            if not self._rules or rule in self._rules
            if not self._journal.has(self._label, project.name, f"{rule}-{number}", percent)
        ]

    def measure(self, project: Project) -> Iterator[str]:
        """Measure what the journal lacks, and say what was found; what cannot be measured is tried again the next time."""
        if not (missing := self.missing(project)):
            return
        try:
            project.prepare()
            folder = self._work / "results" / self._label
            folder.mkdir(parents=True, exist_ok=True)
            base = folder / f"{project.name}.base.json"
            project.apply(None, {})
            counts = project.measure(base)
        except CannotRunError as error:
            yield f"{project.name} cannot be measured: {error}"
            return
        found: tuple[str, int, Edit | None] = ("", 0, None)
        for rule, number, percent in missing:
            if found[:2] != (rule, number):
                found = (
                    rule,
                    number,
                    find_edit(project, rule, number, self._journal.taken(project.name, rule, number)),
                )
            name = f"{rule}-{number}"
            edit = found[2]
            if edit is None:
                row = self._row(project, name, percent) | {"state": "not applicable", "benchmark": "", "what": ""}
                self._journal.add([row])
                yield f"{project.name} {name}: not applicable"
                continue
            try:
                yield self._one(project=project, name=name, edit=edit, percent=percent, base=base, counts=counts)
            except CannotRunError as error:
                yield f"{project.name} {name} +{percent} % cannot be measured: {error}"

    def _row(self, project: Project, name: str, percent: int) -> dict[str, Any]:
        return {"label": self._label, "project": project.name, "edit": name, "planted": percent}

    def _one(
        self,
        *,
        project: Project,
        name: str,
        edit: Edit,
        percent: int,
        base: Path,
        counts: dict[str, int],
    ) -> str:
        start = time.monotonic()
        plants = project.rounds(counts, percent) if percent else {}
        if percent and not plants:
            self._journal.add(
                [self._row(project, name, percent) | {"state": "not applicable", "benchmark": "", "what": ""}]
            )
            return f"{project.name} {name}: no function can hold the loop"
        project.apply(edit, plants)
        output = base.with_name(f"{project.name}.candidate.json")
        after = project.measure(output)
        told = project.compare(base, output)
        rows = [
            item
            | self._row(project, name, percent)
            | {
                "what": edit.what,
                "rounds": plants.get(item["benchmark"]),
                "Ir": after.get(item["benchmark"]),
                "seconds": round(time.monotonic() - start, 1),
            }
            for item in told
            if not percent or item["benchmark"] in plants
        ]
        self._journal.add(rows)
        said = ", ".join(f"{row['state']} {row['score_ppm'] / 10_000:+.2f} %" for row in rows)
        return f"{project.name} {name} +{percent} %: {said}"
