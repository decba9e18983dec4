"""Writes commits and reads contents of a git repository, many with one process.

Nothing here moves a branch, or touches the work tree or the index.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.vcs.git import OWN_REFS, Git, GitTimeoutError

BLOB = "blob"
TREE = "tree"
NOBODY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "cg-bench"), ("EMAIL", "cg-bench@localhost"))
}

_NO_REF = f"{OWN_REFS}/none"
_TIMEOUT_S = 120.0
# After a remote that did not answer in time: a `backfill` may go on for days.
_ASK_AGAIN_S = 600.0
# What is in memory at once.
_GROUP_BYTES = 1 << 25
_MOST_OUTPUT = 1 << 31
# Objects, too, are on the disk before a branch leads to them: git alone leaves single ones to the system.
_DURABLE = ("-c", "core.fsync=committed,loose-object")
# What says which remotes have promised objects to a partial clone.
_SETTINGS = r"^(remote\..*\.promisor|extensions\.partialclone)$"
_OFF = frozenset({"false", "no", "off", "0", ""})


class Entry(msgspec.Struct, frozen=True):
    """One entry of a tree; `kind` is blob, tree or commit."""

    oid: str
    kind: str

    @property
    def is_folder(self) -> bool:
        """Return whether it is a folder."""
        return self.kind == TREE


class Objects(Git, frozen=True):
    """The objects of the repository around a directory. Methods raise MeasurementError where git fails."""

    _known: list[dict[str, None]] = msgspec.field(default_factory=list[dict[str, None]])  # what `_remotes` found
    # When a remote did not answer in time, and why.
    _late: list[tuple[float, str]] = msgspec.field(default_factory=list[tuple[float, str]])

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
            _, kind, oid = what.decode("ascii", "replace").split()
            found[path.decode("utf-8", "surrogateescape")] = Entry(oid, kind)
        return found

    def commit(self, parent: str | None, changes: Mapping[str, bytes | None], message: str) -> str:
        """Write a commit that adds or (None) removes these files, and return its id.

        It has the user's name or, where git knows none, the program's.
        """
        stream = [f"commit {_NO_REF}\nmark :1\ncommitter {self._identity()}\n".encode(), _data(message.encode())]
        if parent is not None:
            stream.append(f"from {parent}\n".encode())
        for path, data in changes.items():
            if data is None:
                stream.append(f"D {path}\n".encode())
            else:
                stream += f"M 100644 inline {path}\n".encode(), _data(data)
        # Without the ref, which is then never written.
        stream.append(f"get-mark :1\nreset {_NO_REF}\n\n".encode())
        return self._bytes("fast-import", "--quiet", stdin=b"".join(stream)).decode("ascii").strip()

    def _identity(self) -> str:
        ask = ("var", "GIT_COMMITTER_IDENT")
        done = self.run("-c", "user.useConfigOnly=true", *ask)
        if done.status != 0:
            done = self.run(*ask, environ={**self.environ, **NOBODY})
        return done.stdout.decode(errors="backslashreplace").strip()

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


def _data(data: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(data), data)


def _lines(words: Iterable[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()
