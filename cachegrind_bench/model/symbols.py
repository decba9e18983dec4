"""Symbol names as they stay the same from one build to the next.

Knows what compilers and linkers put into names that another build has differently; must not know how names are shown.
Works on the text alone, in linear time: names come from files that anybody may have written.
"""

from __future__ import annotations

import re
from functools import cache

UNKNOWN = "???"  # what Valgrind writes for a file or function it has no name for
STUB = "@plt"  # how the name of a stub ends through which a library is called
MANGLED = ("_Z", "_R", "__Z")  # how names of C++ and Rust begin

_LIBC = r"(?:__libc_|__GI_)*"
# Of 64- and 32-bit C++ the operators new and new[], which are written with the type of a size; and delete.
RESIZES = re.compile(rf"{_LIBC}realloc(?:array)?(?:@|$)")
ALLOCATES = re.compile(
    rf"{_LIBC}(?:calloc|malloc|memalign|posix_memalign|aligned_alloc)(?:@|$)|_Zn[aw][mj]|{RESIZES.pattern}"
)
FREES = re.compile(rf"{_LIBC}c?free(?:@|$)|_Zd[al]Pv")


class Symbol(str):
    """The name of a function as its program has it. Documents have it demangled."""

    __slots__ = ()


_LONGEST = 4096  # names of real programs are shorter; longer ones are distinguished as they are
_VERSIONS = re.compile(r"@@?[A-Za-z_][\w.@]*")

# What compilers append to the name of a function they have copied or split. Some words never come without a number,
# which distinguishes them from a method of that name, as in Go or Java.
_NUMBERED_CLONES = frozenset(
    ("constprop", "isra", "part", "lto_priv", "llvm", "__uniq", "specialized", "memprof", "__part", "split", "lto")
)
_CLONES = frozenset(("cold", "localalias", "ipa_ra", "argprom", "argelim", "retelim", "cfi", "cfi_jt", "extracted"))
# Numbers that count what has no name, in the order of the source: one more lambda renumbers those after it.
_COUNTED = re.compile(
    r"(?<=#)\d{1,9}(?=\})"  # {lambda(int)#2}, {unnamed type#1}, {closure#1}
    r"|(?<='lambda)\d{1,9}(?=')|(?<='unnamed)\d{1,9}(?=')"  # the same in the words of LLVM's demangler
    r"|(?<=\bOUTLINED_FUNCTION_)\d{1,9}"
    r"|\d{0,2}(?=\$_)"  # clang's lambdas, with the length of their name: 3$_0, 4$_10
    r"|(?<=\$_)\d{1,9}"
)
# The same in the mangled names of C++: UlvE_, UlvE0_ and Ut_, Ut0_.
_CXX_COUNTED = re.compile(r"(?<=E)\d{1,9}(?=_)|(?<=Ut)\d{1,9}(?=_)")
# Rust: the hash of the older mangling; and in the newer one the hashes of crates, the numbers of closures, and the
# references back into the name, which count bytes across both.
_RUST_HASH = re.compile(r"17h[0-9a-f]{16}(?=E)|::h[0-9a-f]{16}(?=$|[. ])")
_RUST_NUMBERS = re.compile(r"s[0-9A-Za-z]{0,16}_(?=\d)|(?<=B)[0-9A-Za-z]{0,6}_")
_GO_CLOSURE = re.compile(r"(?<=\.)(?:func|gowrap|deferwrap)\d{1,9}(?:\.\d{1,9})*(?![^.-])|(?<=-range)\d{1,9}")
_DIGITS = re.compile(r"\d+")


@cache
def folded(name: str) -> str:
    """Return what identifies a function across rebuilds: without clone suffixes, versions, hashes and running numbers."""
    if len(name) > _LONGEST:
        return name
    for _ in range(5):  # what is left may again look as if something had been appended
        before, name = name, _folded_once(name)
        if name == before:
            break
    return name


def _folded_once(name: str) -> str:
    at = name.find("@", 1)
    bare = name[:at] if at > 0 and _VERSIONS.fullmatch(name, at) else name
    bare = _without_clones(_GO_CLOSURE.sub(lambda match: _DIGITS.sub("#", match[0]), bare))
    bare = _COUNTED.sub("", _RUST_HASH.sub("", bare))
    if bare.startswith("_R"):
        return _RUST_NUMBERS.sub("_", bare)
    return _CXX_COUNTED.sub("", bare) if bare.startswith(MANGLED) and ("Ul" in bare or "Ut" in bare) else bare


def _without_clones(name: str) -> str:
    """Return the name without what a compiler appended. A name with dots of its own, as in Go, keeps words at its end."""
    parts = name.split(".")
    first = next((at for at, part in enumerate(parts) if part), len(parts))  # that much is the name itself
    words = False
    while len(parts) > first + 1:
        numbered = parts[-1].isdecimal()
        if parts[-1] in _CLONES or (numbered and parts[-2] not in _NUMBERED_CLONES):
            words = words or not numbered
            parts.pop()
        elif numbered and len(parts) > first + 2:
            del parts[-2:]
        else:
            break
    plain = len(parts) <= first + 1 or parts[first].startswith(MANGLED)
    return name if words and not plain else ".".join(parts)
