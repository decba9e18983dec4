"""Reads which compilers made an executable or library, and their options, from debug information, `.comment` and Go's build information."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache

from cachegrind_bench.hermetic.elf import UnusableError, sections
from cachegrind_bench.model.text import printable

# Installed by the distribution: its build-id says all, and nobody here chose how it was built.
_SYSTEM = re.compile(r"/(?:usr/)?(?:bin|sbin|lib(?:32|64|x32)?)/")
_MOST, _LONGEST = 20, 1000
# DW_AT_producer, which linkers put into .debug_str once for all files that were compiled alike.
_WORDS = (b"GNU ", b"clang version ", b"(rustc version ")
_PRODUCER = re.compile(rb"GNU [A-Z].*|[\w .()-]*(?:clang version |\(rustc version ).*", re.DOTALL)
_VERSION = re.compile(r"\d+\.\d+[\w.]*")
_GO_VERSION, _GO_SETTING = (
    re.compile(rb"\bgo1\.[\w.]+"),
    re.compile(rb"(?<=\nbuild\t)(?!vcs|-compiler=gc|-buildmode|DefaultGODEBUG)[^\n]+"),
)


def producers(path: str) -> tuple[str, ...]:
    """Return the compilers of a file that was built here, each with its options where these are recorded, sorted."""
    if _SYSTEM.match(path):
        return ()
    try:
        found = os.stat(path)
        return _producers(path, found.st_size, found.st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=64)  # a suite runs one program many times
def _producers(path: str, _size: int, _modified: int) -> tuple[str, ...]:
    try:
        found = sections(path, (".debug_str", ".comment", ".go.buildinfo"))
    except (UnusableError, OSError, ValueError):
        return ()
    made = {_text(text) for text in _named(found.get(".debug_str", b"")) if _PRODUCER.fullmatch(text)}
    versions = {version for text in made for version in _VERSION.findall(text)}
    made |= {
        _text(text)
        for text in found.get(".comment", b"").split(b"\0")
        if text and versions.isdisjoint(_VERSION.findall(_text(text)))
    }
    if (version := _GO_VERSION.search(go := found.get(".go.buildinfo", b""))) is not None:
        made.add(_text(b" ".join([version[0], *_GO_SETTING.findall(go)])))
    return tuple(sorted(made)[:_MOST])


def _named(strings: bytes) -> Iterator[bytes]:
    """Yield those of these strings, each of which ends with a NUL, that may name a compiler."""
    for word in _WORDS:
        at = strings.find(word)
        while at >= 0:
            end = strings.find(b"\0", at)
            yield strings[strings.rfind(b"\0", 0, at) + 1 : end]
            at = strings.find(word, end)


def _text(data: bytes) -> str:
    return printable(data)[:_LONGEST]
