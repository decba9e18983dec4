"""Symbol names: as written in the source, and as they stay the same from one build to the next.

Knows the name mangling of C++ and Rust and what compilers append; must not know how names are shown. Any text is
answered, never refused: names come from files that anybody may have written.
"""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from functools import cache
from io import StringIO

UNKNOWN = "???"  # what Valgrind writes for a file or function it has no name for

MANGLED = ("_Z", "_R", "__Z")  # how names of C++ and Rust begin
_RUST_LEGACY = re.compile(r"_ZN.*17h[0-9a-f]{16}E")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}(?=$|[. ])")
_VERSION = re.compile(r"@@?[A-Za-z_][\w.]*$")
_VERSIONS = re.compile(r"@@?[A-Za-z_][\w.@]*")

# What compilers append to the name of a function they have copied or split. Some words never come without a number,
# which tells them from a method of that name, as in Go or Java.
_NUMBERED_CLONES = frozenset(
    ("constprop", "isra", "part", "lto_priv", "llvm", "__uniq", "specialized", "memprof", "__part", "split", "lto")
)
_CLONES = frozenset(("cold", "localalias", "ipa_ra", "argprom", "argelim", "retelim", "cfi", "cfi_jt", "extracted"))
# Numbers that count what has no name, in the order of the source: one more lambda renumbers those after it.
_COUNTED = re.compile(
    r"(?<=#)\d+(?=\})"  # {lambda(int)#2}, {unnamed type#1}, {closure:#1}, {closure#1}
    r"|(?<=\$_)\d+"  # clang's lambdas
    r"|(?<='lambda)\d+(?=')|(?<='unnamed)\d+(?=')"  # the same in the words of LLVM's demangler
    r"|(?<=\bOUTLINED_FUNCTION_)\d+"
)
_GO_CLOSURE = re.compile(r"(?<=\.)(?:func|gowrap|deferwrap)\d+(?:\.\d+)*(?![^.-])|(?<=-range)\d+")
_DIGITS = re.compile(r"\d+")
# References back into a mangled name, which may hold references themselves: n of them can blow a name up 3^(n/3) times,
# and take as long. A hostile file must not do so, and names of real programs that have more can be read mangled.
_CXX_REFERENCE = re.compile(r"[ST][0-9A-Z]*_")
_MOST_CXX_REFERENCES = 30
_RUST_REFERENCE = re.compile(r"B[0-9A-Za-z]{0,5}_")
_MOST_RUST_REFERENCES = 15
_LONGEST = 20_000
# Where a v0 name cannot be demangled: the hashes of crates, and the references that count bytes across them.
_RUST_CRATE_OR_REFERENCE = re.compile(r"(?<=C)s[0-9A-Za-z]+_|(?<=B)[0-9A-Za-z]{1,4}_")


@cache
def demangled(name: str) -> str:
    """Return a C++ or Rust name as written in the source; any other name as it is."""
    if not name.startswith(MANGLED):
        return name
    bare = _VERSION.sub("", name)
    found = _rust(bare) if bare.startswith("_R") or _RUST_LEGACY.match(bare) else None
    found = found or _cxx(bare)
    return _RUST_HASH.sub("", found) if found and len(found) <= max(_LONGEST, len(name)) else name


@cache
def folded(name: str) -> str:
    """Return what identifies a function across rebuilds: without clone suffixes, versions, hashes and running numbers."""
    for _ in range(5):  # an identifier may look mangled itself; no real one does so twice
        before, name = name, _folded_once(name)
        if name == before:
            break
    return name


def _folded_once(name: str) -> str:
    at = name.find("@", 1)
    bare = name[:at] if at > 0 and _VERSIONS.fullmatch(name, at) else name
    bare = _without_clones(_GO_CLOSURE.sub(lambda match: _DIGITS.sub("#", match[0]), bare))
    found = demangled(bare)
    if found == bare and bare.startswith("_R"):
        found = _RUST_CRATE_OR_REFERENCE.sub("_", bare)
    return _COUNTED.sub("", found)


def _without_clones(name: str) -> str:
    parts = name.split(".")
    first = next((at for at, part in enumerate(parts) if part), len(parts))  # that much is the name itself
    while len(parts) > first + 1:
        numbered = parts[-1].isdecimal()
        if parts[-1] in _CLONES or (numbered and parts[-2] not in _NUMBERED_CLONES):
            parts.pop()
        elif numbered and len(parts) > first + 2:
            del parts[-2:]
        else:
            break
    return ".".join(parts)


def _rust(name: str) -> str | None:
    if len(_RUST_REFERENCE.findall(name)) > _MOST_RUST_REFERENCES:
        return None
    import rust_demangler  # type: ignore[import-untyped]  # ships no types

    try:
        with redirect_stdout(StringIO()):  # the library prints what it cannot read
            found = str(rust_demangler.demangle(name))
    except Exception:  # noqa: BLE001 - the library answers odd names with whatever it stumbles over
        return None
    return None if "?" in found else found  # its mark for a part it could not read


def _cxx(name: str) -> str | None:
    if len(_CXX_REFERENCE.findall(name)) > _MOST_CXX_REFERENCES:
        return None
    try:
        import cxxfilt  # type: ignore[import-untyped]  # ships no types; needs the C++ library of the system
    except OSError:
        return None
    try:
        return str(cxxfilt.demangle(name))
    except (cxxfilt.Error, UnicodeError):
        return None
