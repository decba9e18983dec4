"""Writes and reads the objects of a git repository: contents, trees and commits, many with one process.

Knows git's formats of them. Nothing here moves a branch, or touches the work tree or the index.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.process import memory_file
from cachegrind_bench.vcs.git import Git, GitTimeoutError

BLOB = "blob"
TREE = "tree"
NOBODY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "cg-bench"), ("EMAIL", "cg-bench@localhost"))
}

_FILE = "100644"
_TIMEOUT_S = 120.0
# After a remote that did not answer in time: a `backfill` may go on for days.
_ASK_AGAIN_S = 600.0
# What is in memory at once, and how many descriptors are open.
_GROUP_BYTES = 1 << 25
_GROUP_FILES = 100
_MOST_OUTPUT = 1 << 31
# Objects, too, are on the disk before a branch leads to them: git alone leaves single ones to the system.
_DURABLE = ("-c", "core.fsync=committed,loose-object")
# What says which remotes have promised objects to a partial clone.
_SETTINGS = r"^(remote\..*\.promisor|extensions\.partialclone)$"
_OFF = frozenset({"false", "no", "off", "0", ""})


class Entry(msgspec.Struct, frozen=True):
    """One entry of a tree; `mode` is octal digits, `kind` is blob, tree or commit."""

    oid: str
    kind: str = BLOB
    mode: str = _FILE

    @property
    def is_folder(self) -> bool:
        """Return whether it is a folder."""
        return self.kind == TREE


_FOLDER = Entry("", TREE, "040000")


class Objects(Git, frozen=True):
    """The objects of the repository around a directory. Methods raise MeasurementError where git fails."""

    _known: list[dict[str, None]] = msgspec.field(default_factory=list[dict[str, None]])  # what `_remotes` found
    # When a remote did not answer in time, and why.
    _late: list[tuple[float, str]] = msgspec.field(default_factory=list[tuple[float, str]])

    def write(self, contents: Iterable[bytes]) -> list[str]:
        """Write contents, and return their ids. What is there already is not written again."""
        oids: list[str] = []
        for group in _groups(contents):
            with ExitStack() as stack:
                paths = [_in_memory(stack, data) for data in group]
                text = self._ask("hash-object", "-w", "--no-filters", "--stdin-paths", lines=paths)
            oids += text.decode("ascii").split()
        return oids

    def fetch(self, oids: Sequence[str]) -> None:
        """Fetch those of these objects that are not here, with one connection. MeasurementError if that fails.

        An object that no remote has promised either is left for the reader to miss. After one did not answer in time, none is asked for some minutes.
        """
        # A single one git fetches as quickly.
        remotes = self._remotes() if len(oids) > 1 or self._late else {}
        if not remotes:
            return
        # Without fetching any, as any other question would.
        look = ("rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--ignore-missing", "--stdin")
        done = self.run(*look, stdin=_lines(oids), timeout=_TIMEOUT_S, limit=_MOST_OUTPUT)
        here = {*done.stdout.decode("ascii", "replace").split()}
        missing = [oid for oid in dict.fromkeys(oids) if oid not in here]
        if done.status != 0 or not missing:  # of a damaged one, the reader finds out which
            return
        if self._late and time.monotonic() < self._late[-1][0] + _ASK_AGAIN_S:
            raise GitTimeoutError(self._late[-1][1])
        why = ""
        for remote in remotes:
            # Nothing to negotiate: what is asked for has no history.
            settings, options = ("-c", "fetch.negotiationAlgorithm=noop"), ("--no-filter", "--stdin")
            try:
                done = self.fetch_from(remote, options=options, settings=settings, stdin=_lines(missing))
            except GitTimeoutError as error:
                self._late.append((time.monotonic(), error.message))
                raise
            if done.status == 0:
                return
            why = why or self.failed(done, "fetch").message
        raise MeasurementError(why, hint="check that the remote can be reached, or fetch without --filter")

    def read(self, oids: Sequence[str], most: int) -> Iterator[bytes]:
        """Return these contents, in this order; few are in memory at once. Whoever has more than `most` bytes is an error."""
        sizes = [self._size(line, most) for line in self._ask("cat-file", "--batch-check", lines=oids).splitlines()]
        start = 0
        while start < len(oids):
            end, total = start + 1, sizes[start]
            while end < len(oids) and total + sizes[end] <= _GROUP_BYTES:
                total += sizes[end]
                end += 1
            yield from self._contents(oids[start:end], sizes[start:end])
            start = end

    def listing(self, commit: str) -> dict[str, Entry]:
        """Return what is in the tree of a commit by path, folders as well. Bytes that are not text are surrogates."""
        found: dict[str, Entry] = {}
        listed = self._bytes("ls-tree", "-r", "-t", "-z", "--full-tree", commit, stdin=b"")
        for record in listed.split(b"\0")[:-1]:
            what, _, path = record.partition(b"\t")
            mode, kind, oid = what.decode("ascii", "replace").split()
            found[path.decode("utf-8", "surrogateescape")] = Entry(oid, kind, mode)
        return found

    def tree(self, listing: Mapping[str, Entry], changes: Mapping[str, Entry | None]) -> str:
        """Write the tree of a listing with these entries added, replaced or (None) removed, and return its id.

        Only the folders on the way to a change are written. MeasurementError if a file is where a folder is needed.
        """
        folders: dict[str, dict[str, Entry]] = {}
        for path, entry in (*listing.items(), *changes.items()):
            folder, _, name = path.rpartition("/")
            inside = folders.setdefault(folder, {})
            if entry is None:
                inside.pop(name, None)
            else:
                inside[name] = entry
        touched = {""}
        for path in changes:
            parts = path.split("/")
            touched |= {"/".join(parts[:depth]) for depth in range(1, len(parts))}
        oid = ""
        for folder in sorted(touched, reverse=True):  # what is in a folder comes before it
            inside = folders.get(folder, {})
            if inside or not folder:
                oid = self._write_tree(inside)
            if folder:
                above, _, name = folder.rpartition("/")
                beside = folders.setdefault(above, {})
                if inside and not beside.get(name, _FOLDER).is_folder:
                    raise MeasurementError(f"{folder} is a file, where a folder is needed")
                if inside:
                    beside[name] = replace(_FOLDER, oid=oid)
                elif beside.get(name, _FOLDER).is_folder:  # one without entries does not exist
                    beside.pop(name, None)
        return oid

    def commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        """Write a commit, by the user's name or, where git knows none, by the program's."""
        before = [word for parent in parents for word in ("-p", parent)]
        arguments = (*_DURABLE, "commit-tree", *before, "-m", message, tree)
        done = self.run(*arguments, environ=self._identity(), timeout=_TIMEOUT_S)
        oid = done.stdout.decode("ascii", "replace").strip()
        if done.status != 0:
            raise self.failed(done, "commit-tree")
        return oid

    def _identity(self) -> Mapping[str, str]:
        known = [self.run("config", "--get", f"user.{what}").status == 0 for what in ("name", "email")]
        return self.environ if all(known) else {**NOBODY, **self.environ}

    def _write_tree(self, entries: Mapping[str, Entry]) -> str:
        lines = [f"{entry.mode} {entry.kind} {entry.oid}\t{name}\0" for name, entry in entries.items()]
        text = "".join(lines).encode("utf-8", "surrogateescape")
        # `--missing`: what comes from listings is there, and a partial clone would fetch all of it.
        return self._bytes("mktree", "-z", "--missing", stdin=text).decode("ascii", "replace").strip()

    def _size(self, line: bytes, most: int) -> int:
        name, _, rest = line.decode("utf-8", "replace").partition(" ")
        kind, _, size = rest.partition(" ")
        if kind != BLOB or not size.isdigit():
            raise MeasurementError(f"the object {name} is {rest.strip()}")
        if int(size) > most:
            raise MeasurementError(f"the object {name} has {size} bytes, and {most} is the most")
        return int(size)

    def _contents(self, oids: Sequence[str], sizes: Sequence[int]) -> Iterator[bytes]:
        text = self._ask("cat-file", "--batch", "--buffer", lines=oids)
        place = 0
        for oid, size in zip(oids, sizes, strict=True):
            head = f"{oid} {BLOB} {size}\n".encode()
            if not text.startswith(head, place):  # removed since its size was asked for
                raise MeasurementError(f"git has no object {oid}")
            start = place + len(head)
            yield text[start : start + size]
            place = start + size + 1

    def _remotes(self) -> dict[str, None]:
        if not self._known:
            found: dict[str, None] = {}
            text = self.run("config", "-z", "--get-regexp", _SETTINGS).stdout.decode(errors="surrogateescape")
            for entry in text.split("\0"):
                key, _, value = entry.partition("\n")
                if key == "extensions.partialclone":
                    found[value] = None
                elif key and value.lower() not in _OFF:
                    found[key.removeprefix("remote.").removesuffix(".promisor")] = None
            self._known.append(found)
        return self._known[0]

    def _ask(self, *arguments: str, lines: Iterable[str] = ()) -> bytes:
        return self._bytes(*arguments, stdin=_lines(lines))

    def _bytes(self, *arguments: str, stdin: bytes) -> bytes:
        timeout = self.waiting.at_most(_TIMEOUT_S)  # a partial clone may have to ask a remote
        done = self.run(*_DURABLE, *arguments, stdin=stdin, timeout=timeout, limit=_MOST_OUTPUT)
        if done.status != 0:
            raise self.failed(done, arguments[0])
        if len(done.stdout) >= _MOST_OUTPUT:  # only its end was kept
            raise MeasurementError(f"git {arguments[0]} had more to say than can be read")
        return done.stdout


def _groups(contents: Iterable[bytes]) -> Iterator[list[bytes]]:
    group: list[bytes] = []
    size = 0
    for data in contents:
        if group and (size + len(data) > _GROUP_BYTES or len(group) == _GROUP_FILES):
            yield group
            group, size = [], 0
        group.append(data)
        size += len(data)
    if group:
        yield group


def _in_memory(stack: ExitStack, data: bytes) -> str:
    """Return the path of a file that has these bytes, and that nobody has to remove, whatever happens to us."""
    descriptor = memory_file(data)
    stack.callback(os.close, descriptor)
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _lines(words: Iterable[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()
