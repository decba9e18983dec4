"""Measuring other commits, two to compare or those a finding may have come with.

Each is checked out next to the work tree, and measured there.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from cachegrind_bench.config.load import load
from cachegrind_bench.config.source import OWN_FILE, as_own_file, find
from cachegrind_bench.errors import CgBenchError, MeasurementError, UsageError
from cachegrind_bench.hermetic.place import Checkout
from cachegrind_bench.log import LOG
from cachegrind_bench.model.codec import ResultFile, encode
from cachegrind_bench.model.metrics import CostModel
from cachegrind_bench.model.text import some
from cachegrind_bench.startup.exchange import CHECKED_OUT, CHECKOUT, ITERATIONS, RESULTS, WORKTREE
from cachegrind_bench.startup.removal import remove
from cachegrind_bench.store.durable import check_writable, make_folder, write_atomic
from cachegrind_bench.usecases.checkout_dates import note_files
from cachegrind_bench.usecases.comparison import Side
from cachegrind_bench.usecases.evidence import WORDS, Evidence, with_evidence
from cachegrind_bench.usecases.numbers import handed_over, numbers_of
from cachegrind_bench.usecases.result_files import DEFAULT_LIMIT
from cachegrind_bench.usecases.saving import left_if_unwritten
from cachegrind_bench.usecases.selection import SelectRequest, chooses
from cachegrind_bench.vcs.git import Git, top_folder, untracked_folders, without_repository
from cachegrind_bench.vcs.worktree import changes_as_commit, own_folder, worktree

if TYPE_CHECKING:
    from cachegrind_bench.compare.verdict import Gates
    from cachegrind_bench.history.values import Finding
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.usecases.trend import Found
    from cachegrind_bench.vcs.revisions import Repository

_SIDES = "base.json", "candidate.json"
_SHOWN = 5
_OPTIONS = "CG_BENCH_"
_OWN = str(Path(__file__).parents[2])  # what a folder of PYTHONPATH is that we are imported from
# Measures as `cg-bench run` with these words does, in this folder and under these variables.
Run: TypeAlias = "Callable[[Path, Mapping[str, str], Sequence[str]], Result]"


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkout lays over each commit: its configuration, with its folder, and files, by their paths below the top.

    `always`: also over commits that have a configuration. Of the commit's `folders` nothing stays; `files` have mode and
    content, links where they lead.
    """

    configuration: tuple[str, bytes] | None
    always: bool = False
    folders: tuple[str, ...] = ()
    files: tuple[tuple[str, int, bytes], ...] = ()


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """A place to measure commits of a repository, one after the other.

    All are checked out at the same path: a path of another length would be another cost. `within` is the folder below the
    top of the work tree in which commands are executed, and `select` what is chosen of a suite. `results` are
    shared by commits, whose files are then measured with dates that follow from their contents. Of each benchmark, all commits count
    the same number of iterations, if `numbers` has none the one of the commit that is measured first.
    """

    repository: Repository
    folder: Path
    within: str
    run: Run
    select: SelectRequest
    overlay: Overlay
    results: Path | None = None
    numbers: dict[str, int] = msgspec.field(default_factory=dict[str, int])

    def measure(self, sha: str, words: Sequence[str], kept: Path | None = None) -> Result:
        """Measure this commit as `cg-bench run` with these words does. MeasurementError if there is no result.

        Its files are in the folder `kept` then, with all that was built, and are used again if they are there before.
        """
        repository, again = self.repository, kept is not None and kept.exists()
        with worktree(repository, sha, self.folder / "tree", kept) as tree:
            place = tree / self.within
            if not place.is_dir() or not place.resolve().is_relative_to(tree.resolve()):  # a link leads elsewhere
                raise MeasurementError(
                    f"{sha[:12]} has no folder {self.within}", hint="start in a folder that all commits have"
                )
            if not again:
                if "--" not in words:
                    self._configure(sha, tree, place)
                self._lay_files(tree)
            environ = self._environ(tree)
            if self.results is not None:
                environ[RESULTS] = str(self.results)
                environ[CHECKED_OUT] = str(self.folder / "files")
                note_files(Git(tree, environ, repository.waiting), self.folder / "files", self.overlay.files)
            if self.numbers:
                environ |= handed_over(self.numbers, self.folder / "iterations.json")
            try:
                result = self.run(place, environ, words)
            except CgBenchError as error:
                message, hint = (_without(text, place, tree) for text in (error.message, error.hint or ""))
                failure = MeasurementError(f"{sha[:12]} could not be measured: {message}", hint=hint or None)
                failure.repeated = error.repeated
                raise failure from error
        if result.commit is not None and result.commit.sha != sha:
            raise MeasurementError(
                f"the result of {sha[:12]} is of another commit, which was checked out there meanwhile"
            )
        self.numbers.update({**numbers_of(result.benchmarks), **self.numbers})
        return result

    def _environ(self, tree: Path) -> dict[str, str]:
        """Return the variables under which this worktree is measured: PYTHONPATH leads into it where it led into the checkout."""
        repository = self.repository
        environ = {
            name: value
            for name, value in without_repository(repository.environ).items()
            # Options are for the command that was called: not for set-ups here that call cg-bench.
            if not name.startswith(_OPTIONS) or name == ITERATIONS
        }
        top = top_folder(repository.cwd.resolve())
        if top is None or repository.run("rev-parse", "--is-inside-work-tree").stdout.strip() != b"true":
            return environ  # a worker's clone has no work tree
        checkout = Checkout(str(top), os.path.realpath(tree), untracked_folders(Git(top, environ, repository.waiting)))
        paths = environ.get("PYTHONPATH", "").split(os.pathsep)
        paths = [path if path == _OWN else checkout.moved(path) or path for path in paths]
        found = {CHECKOUT: str(top), WORKTREE: json.dumps(checkout), "PYTHONPATH": os.pathsep.join(paths)}
        return environ | {name: value for name, value in found.items() if value}

    def side(
        self, name: str, sha: str, words: Sequence[str], *, limit: int = DEFAULT_LIMIT, kept: Path | None = None
    ) -> Side:
        """Measure this commit, which the user calls so, in the same way, and return it as a side of a comparison.

        Files of the worktree, which is gone then, are those of the user's.
        """
        LOG.info(f"measuring {name}, commit {sha[:12]}")
        data = encode(self.measure(sha, words, kept))
        if len(data) > limit:
            raise UsageError(f"the result of {sha[:12]} has {len(data)} bytes, and {limit} is the most")
        folders = self.folder / "tree", top_of(self.repository)
        here, there = (json.dumps(os.path.join(path, ""))[1:-1].encode() for path in folders)
        return Side(name=name, file=ResultFile(data.replace(here, there), name))

    def _configure(self, sha: str, tree: Path, place: Path) -> None:
        """Give a commit without a configuration, or without what is chosen, that of the checkout. MeasurementError if that has no configuration either."""
        own, mine = find(place), self.overlay.configuration
        if own is not None and (mine is None or (not self.overlay.always and self._is_chosen_in(own))):
            return
        if mine is None:
            raise MeasurementError(
                f"neither {sha[:12]} nor your checkout has a configuration of a suite",
                hint="'cg-bench init' writes one; or give the command to measure after --",
            )
        folder = tree / mine[0]
        _make_way(tree, os.path.join(mine[0], OWN_FILE))
        make_folder(folder)
        write_atomic(folder / OWN_FILE, mine[1])
        if not self.overlay.always:
            lacks = "no configuration" if own is None else "none of these benchmarks in its configuration"
            LOG.info(f"{sha[:12]} has {lacks}: that of your checkout is used")

    def _lay_files(self, tree: Path) -> None:
        for folder in self.overlay.folders:
            _make_way(tree, folder)
        for name, mode, data in self.overlay.files:
            target = tree / name
            _make_way(tree, name)
            make_folder(target.parent)
            if stat.S_ISLNK(mode):
                target.symlink_to(os.fsdecode(data))
            else:
                target.write_bytes(data)
                target.chmod(stat.S_IMODE(mode))

    def _is_chosen_in(self, configuration: Path) -> bool:
        """Return whether it has benchmarks that are chosen, or may have some, as its harnesses know; what is wrong is reported later."""
        try:
            found = load(configuration, check_files=False)
        except CgBenchError:
            return configuration.is_file()
        return bool(found.entries) or any(chooses(self.select)(spec) for spec in found.benchmarks)


def overlay_of(repository: Repository, carry: tuple[str, ...] | None) -> Overlay:
    """Return what this checkout lays over commits: None for its configuration alone, and only where a commit has none.

    Else its configuration and these of its files and folders; what git ignores stays behind. UsageError if there are none.
    """
    mine, top = find(repository.cwd), top_of(repository)
    configuration = None if mine is None else (os.path.relpath(mine.parent.resolve(), top), as_own_file(mine).encode())
    files: list[tuple[str, int, bytes]] = []
    within = os.path.relpath(repository.cwd.resolve(), top)
    folders = [os.path.normpath(os.path.join(within, path)) for path in carry or ()]
    for path, folder in zip(carry or (), folders, strict=True):
        listing = "ls-files", "-z", "--full-name", "--cached", "--others", "--exclude-standard", "--", path
        names = [name for name in repository.text(*listing).split("\0") if name and os.path.lexists(top / name)]
        if not names or folder == ".":
            what = "everything would be carried" if names else "there is nothing to carry"
            raise UsageError(f"{what} at {path!r}", hint="give files and folders below the working directory")
        files += [
            (name, *_content(top / name)) for name in names if (top / name).is_symlink() or (top / name).is_file()
        ]
    return Overlay(configuration=configuration, always=carry is not None, folders=tuple(folders), files=tuple(files))


def _make_way(tree: Path, name: str) -> None:
    """Remove what a commit has at this path, and links on the way to it, which may lead anywhere."""
    for path in (*reversed(Path(name).parents[:-1]), Path(name)):
        if (tree / path).is_symlink() or (tree / path).is_file():
            (tree / path).unlink()
    if (tree / name).is_dir():
        remove(str(tree / name))


def _content(path: Path) -> tuple[int, bytes]:
    try:
        mode = path.lstat().st_mode
        return mode, os.fsencode(os.readlink(path)) if stat.S_ISLNK(mode) else path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def top_of(repository: Repository) -> Path:
    """Return the top of the work tree."""
    return Path((repository.answer("rev-parse", "--show-toplevel") or "").removesuffix("\n")).resolve()


def within_of(repository: Repository) -> str:
    """Return the working directory below the top of the work tree."""
    return os.path.relpath(repository.cwd.resolve(), top_of(repository))


@contextmanager
def opened_worktree(repository: Repository, run: Run, select: SelectRequest) -> Generator[Worktree]:
    """Return a place to measure commits, which is removed afterwards."""
    with own_folder() as folder:
        yield Worktree(
            repository=repository,
            folder=folder,
            within=within_of(repository),
            run=run,
            select=select,
            overlay=overlay_of(repository, None),
        )


def _without(text: str, *folders: Path) -> str:
    """Return a text in which paths begin at these folders of a worktree, which is gone when it is read."""
    for folder in folders:
        text = text.replace(f"{folder}/", "").replace(f"{os.path.relpath(folder)}/", "")
    return text


def _with_hint(error: CgBenchError) -> str:
    return error.message if error.hint is None else f"{error.message} ({'; '.join(error.hint.splitlines())})"


class AbRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Two revisions to measure by `cg-bench run` with these words; without a candidate it is the tracked files as they are.

    `select` is what is chosen of a suite, by the words `choosing`. Both result files are kept in the folder `keep`. What
    needs `evidence` under these gates is measured once more.
    """

    base: str
    candidate: str | None
    words: tuple[str, ...]
    choosing: tuple[str, ...]
    select: SelectRequest
    keep: Path | None
    max_size: int
    gates: Gates
    evidence: Evidence


def measured_sides(request: AbRequest, repository: Repository, run: Run) -> tuple[Side, Side]:
    """Measure both commits, one after the other. UsageError if git does not know one, MeasurementError if one fails."""
    base, candidate = repository.required(request.base), request.candidate
    changes = changes_as_commit(repository) if candidate is None else None
    shas = base, changes or repository.required("HEAD" if candidate is None else candidate)
    names = request.base, request.candidate or "your work tree"
    if request.keep is not None:
        make_folder(request.keep)
        for file in _SIDES:
            check_writable(request.keep / file)
    with opened_worktree(repository, run, request.select) as place:
        built = [
            None if request.evidence is Evidence.NEVER else place.folder / f"built.{number}" for number in range(2)
        ]

        def measure(folders: Sequence[Path | None], *words: str) -> tuple[Side, Side]:
            before, after = (
                place.side(name, sha, (*words, *request.words), limit=request.max_size, kept=kept)
                for name, sha, kept in zip(names, shas, folders, strict=True)
            )
            return before, after

        def recorded(*words: str) -> tuple[Side, Side]:
            """Measure in what was built, and anew where that fails: some set-ups work once."""
            with suppress(MeasurementError):
                before, after = measure(built, *words)
                if not (before.file.result.failed or after.file.result.failed):
                    return before, after
            return measure([None, None], *words)

        calls = ["--call-tree"] if request.gates.counts_allocations else []
        sides = measure(built, *request.choosing, *calls)
        _keep(request, sides, repository)
        ids = request.evidence.wants(sides[0].file.result, sides[1].file.result, request.gates)
        if ids:
            LOG.info(f"again, with calls: {some(ids, _SHOWN)}")
            chosen = [] if "--" in request.words else [word for name in ids for word in ("--benchmark", name)]
            try:
                before, after = map(with_evidence, sides, recorded(*WORDS, *chosen))
            except MeasurementError as error:
                LOG.warning(f"{some(ids, _SHOWN)}: calls could not be recorded: {_with_hint(error)}")
            else:
                sides = before, after
                _keep(request, sides, repository)
    return sides


def _keep(request: AbRequest, sides: tuple[Side, Side], repository: Repository) -> None:
    if request.keep is not None:
        results = [side.file.whole() for side in sides]
        with left_if_unwritten(repository.cwd, *results):
            for file, result in zip(_SIDES, results, strict=True):
                write_atomic(request.keep / file, encode(result))


def explained_base(base: Side, ids: Sequence[str], words: Sequence[str], repository: Repository, *, run: Run) -> Side:
    """Return the base with evidence of these benchmarks, by `cg-bench run` with these words at its commit.

    As it is, with a warning, where that fails.
    """
    commit = base.file.result.commit
    try:
        if commit is None:
            raise MeasurementError("its commit is not known")
        sha = repository.required(commit.sha)
        with opened_worktree(repository, run, SelectRequest(patterns=tuple(ids))) as place:
            place.numbers.update(numbers_of(base.file.result.benchmarks))
            return with_evidence(base, place.side("the base", sha, (*WORDS, *words)))
    except CgBenchError as error:
        LOG.warning(f"calls of {base.name} could not be recorded: {_with_hint(error)}")
        return base


class Narrowed(msgspec.Struct, frozen=True, kw_only=True):
    """The commits that are left, oldest first, and those of them that could not be measured."""

    suspects: tuple[str, ...]
    skipped: tuple[str, ...]


class Bisected(msgspec.Struct, frozen=True, kw_only=True):
    """The costs before and at the last of the suspects, and what is left of them; None if the change does not show here.

    `sides` are the commit that is left and the one before it, with evidence; None if there is none.
    """

    before: int
    after: int
    left: Narrowed | None
    sides: tuple[Side, Side] | None = None


def bisected(item: Finding, good: str, found: Found, words: Sequence[str], *, run: Run, evidence: Evidence) -> Bisected:
    """Measure the suspects of a finding by `cg-bench run` with these words, until as few as possible are left.

    The last one is measured once more with evidence, unless none is wanted. Without a command among the words its benchmark is one of the suite, by its name then or now.
    """
    series = next(series for series in found.set.series if series.id == item.benchmark)
    names = {item.benchmark, *(old for old, now in found.renames.items() if now == item.benchmark)}
    chosen = [word for name in sorted(names) for word in ("--benchmark", name)]
    chosen = ["--id", item.benchmark] if "--" in words else chosen
    model = CostModel.parse(series.model)
    words = ("-q", "--model", series.model, *chosen, *words)
    with opened_worktree(found.repository, run, SelectRequest(patterns=tuple(sorted(names)))) as place:
        cost = partial(_cost, place, words, names, model)

        def cost_or_none(sha: str) -> int | None:
            try:
                return cost(sha)
            except MeasurementError as error:
                LOG.info(f"skipped: {_with_hint(error)}")
                return None

        before, after = cost(good), cost(item.suspects[-1])
        if abs(after - before) * 2 < abs(item.after - item.before):
            return Bisected(before=before, after=after, left=None)
        left = narrow(item.suspects, cost_or_none, before=before, after=after)
        sides: tuple[Side, Side] | None = None
        if evidence is not Evidence.NEVER and len(left.suspects) == 1:
            (sha,) = left.suspects
            parent = (good, *item.suspects)[item.suspects.index(sha)]
            LOG.info("again, with calls")
            named = {"the commit before": parent, "the one that is left": sha}
            try:
                one, other = (place.side(name, each, (*WORDS, *words)) for name, each in named.items())
            except MeasurementError as error:  # the commit was found all the same
                LOG.warning(f"calls could not be recorded: {_with_hint(error)}")
            else:
                sides = one, other
    return Bisected(before=before, after=after, left=left, sides=sides)


def _cost(place: Worktree, words: Sequence[str], names: Collection[str], model: CostModel, sha: str) -> int:
    """Return what the benchmark of one of these names costs at this commit. MeasurementError if it has no counts there."""
    LOG.info(f"measuring {sha[:12]}")
    result = place.measure(sha, words)
    found = next((item for item in result.benchmarks if item.id in names), None)
    if found is None or found.counts is None:
        why = "it has no such benchmark" if found is None else (found.error or "it failed").partition("\n")[0]
        raise MeasurementError(f"{' or '.join(sorted(names))} could not be measured at {sha[:12]}: {why}")
    return model.score(found.counts)


def narrow(suspects: Sequence[str], measure: Callable[[str], int | None], *, before: int, after: int) -> Narrowed:
    """Return which of these commits, oldest first, brought the cost from `before` to `after`.

    The last of them has the new cost. `measure` returns the cost at a commit, None where it cannot be measured: then its
    neighbours are, and if the change lies among such, they remain. A cost belongs to the level it is nearer to.
    """
    values: dict[int, int | None] = {}
    old, new = -1, len(suspects) - 1  # the last place known to be before the change, the first known to be after
    while untried := [place for place in range(old + 1, new) if place not in values]:
        middle = (old + new) // 2
        place = min(untried, key=lambda place: (abs(place - middle), place))
        value = values[place] = measure(suspects[place])
        if value is None:
            continue
        if abs(value - after) < abs(value - before):
            new = place
        else:
            old = place
    left = range(old + 1, new + 1)
    skipped = tuple(suspects[place] for place in left if place in values and values[place] is None)
    return Narrowed(suspects=tuple(suspects[place] for place in left), skipped=skipped)
