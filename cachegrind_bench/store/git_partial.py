"""What a partial clone left at its remote, fetched at once: git alone asks the server for one object after the other.

Knows how git finds out what is missing; must not know what the objects are for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.vcs.git import failure, try_git

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_FETCH_TIMEOUT_S = 300.0
_LOOK_TIMEOUT_S = 120.0
_LIMIT = 1 << 31  # bytes
_SETTINGS = r"^(remote\..*\.promisor|extensions\.partialclone)$"
_OFF = frozenset({"false", "no", "off", "0", ""})
_QUIET = ("--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", "--no-prune", "--no-filter")
_CALM = ("--no-recurse-submodules", "--no-auto-gc", "--no-write-commit-graph")


class Promises(msgspec.Struct, frozen=True):
    """The objects that remotes have promised to the repository around a directory; none, unless it is a partial clone."""

    repository: Path
    environ: Mapping[str, str]
    _remotes: dict[str, None] = msgspec.field(default_factory=dict[str, None])
    _asked: list[bool] = msgspec.field(default_factory=list[bool])

    def fetch(self, oids: Sequence[str]) -> None:
        """Fetch those of these objects that are not here, with one connection. MeasurementError if that fails.

        An object that no remote has promised either is left for the reader to miss.
        """
        remotes = self._known_remotes() if len(oids) > 1 else []  # a single one git fetches as quickly
        missing = self._missing(oids) if remotes else []
        if not missing:
            return
        why = ""
        for remote in remotes:
            # Nothing to negotiate: what is asked for has no history.
            arguments = ("-c", "fetch.negotiationAlgorithm=noop", "fetch", *_QUIET, *_CALM, "--stdin")
            done = try_git(
                (*arguments, "--end-of-options", remote),
                self.repository,
                self.environ,
                stdin=_lines(missing),
                timeout=_FETCH_TIMEOUT_S,
            )
            if done.status == 0:
                return
            why = why or failure(done, "fetch", self.repository)
        raise MeasurementError(why, hint="see that the remote can be reached, or fetch without --filter")

    def _known_remotes(self) -> list[str]:
        if not self._asked:
            done = try_git(("config", "-z", "--get-regexp", _SETTINGS), self.repository, self.environ)
            for entry in done.stdout.decode("utf-8", "surrogateescape").split("\0"):
                key, _, value = entry.partition("\n")
                if key == "extensions.partialclone":
                    self._remotes[value] = None
                elif key and value.lower() not in _OFF:
                    self._remotes[key.removeprefix("remote.").removesuffix(".promisor")] = None
            self._asked.append(True)
        return [*self._remotes]

    def _missing(self, oids: Sequence[str]) -> list[str]:
        """Return those that are not here, without fetching any, as any other question would."""
        look = ("rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--ignore-missing", "--stdin")
        done = try_git(look, self.repository, self.environ, stdin=_lines(oids), timeout=_LOOK_TIMEOUT_S, limit=_LIMIT)
        if done.status != 0:  # a damaged one; the reader tells which
            return []
        here = {*done.stdout.decode("ascii", "replace").split()}
        return [oid for oid in dict.fromkeys(oids) if oid not in here]


def _lines(oids: Sequence[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode()
