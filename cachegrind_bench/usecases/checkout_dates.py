"""Dates of the files of a checkout, for what a program reads to be the same where a commit has changed nothing.

`git` gives each checkout new dates. What is built of it needs these: Cargo and make build what is newer than what they have built
before, and Go what has another date. So they are replaced when all is built, by dates that follow from the contents.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from cachegrind_bench.errors import StoreError
from cachegrind_bench.startup.exchange import CHECKED_OUT
from cachegrind_bench.store.durable import read_file, write_atomic
from cachegrind_bench.vcs.git import Git
from cachegrind_bench.waiting import Waiting

_FIRST_S, _DIGITS = 1_262_304_000, 7  # from 2010 on, for eight years: whole seconds, as compiled Python files hold
_MOST_BYTES = 1 << 30


def note_files(git: Git, listing: Path, others: Iterable[tuple[str, int, bytes]]) -> None:
    """Write down which files were just checked out there, and the names, modes and contents of others, with hashes of all of them."""
    tracked = git.run("ls-files", "--stage", "-z", limit=_MOST_BYTES).stdout
    own = (f"{mode:o} {hashlib.sha256(data).hexdigest()} 0\t{name}\0" for name, mode, data in others)
    write_atomic(listing, tracked + os.fsencode("".join(own)))


def date_files(environ: Mapping[str, str], cwd: Path) -> None:
    """Date the files that were noted for this run, by their contents, but for those that have changed since then; nothing follows links."""
    noted = environ.get(CHECKED_OUT)
    if noted is None:
        return
    listing = Path(noted)
    with suppress(OSError, StoreError):  # a set-up has removed it: then results are not those of other commits
        until = listing.stat().st_mtime_ns
        tree = os.fsencode(listing.with_name("tree"))
        records = (record.partition(b"\t") for record in read_file(listing, _MOST_BYTES).split(b"\0")[:-1])
        for name, what in {name: what for what, _, name in records}.items():  # what was laid over the commit comes last
            path = os.path.join(tree, name)
            with suppress(OSError):
                if os.lstat(path).st_ctime_ns <= until:
                    date = _FIRST_S + int(hashlib.sha256(what).hexdigest()[:_DIGITS], 16)
                    os.utime(path, (date, date), follow_symlinks=False)
        Git(cwd, environ, Waiting()).run("update-index", "-q", "--refresh")
