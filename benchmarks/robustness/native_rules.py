"""Innocent edits of C, C++ and Rust sources; one that does not compile is dropped, and the next is tried."""

from __future__ import annotations

import itertools
import re
import subprocess
from typing import TYPE_CHECKING

from benchmarks.robustness.edit import Edit, Source
from benchmarks.robustness.native_text import Function, functions, masked

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from benchmarks.robustness.edit import Rule

_C_LOCAL = re.compile(
    r"^[ \t]+(?!return\b|goto\b|case\b|else\b|typedef\b|extern\b|delete\b|break\b)(?:const\s+)?(?:unsigned\s+)?"
    r"[A-Za-z_]\w*(?:\s*\*+\s*(?:const\s+)?|\s+)([a-z_]\w*)\s*(?:=[^=]|;)",
    re.MULTILINE,
)
_RUST_LOCAL = re.compile(r"\blet\s+(?:mut\s+)?([a-z]\w*)\b")
_STRING = re.compile(r'"[A-Za-z][^"\\\n%{}]{9,}(?:\\n)?"')


def is_rust(name: str) -> bool:
    """Tell by the file's name."""
    return name.endswith(".rs")


def _functions(source: Source, rng: random.Random) -> Iterator[tuple[str, str, Function]]:
    found = [
        (name, text, function)
        for name in source.files(rng)
        for text in [source.text(name)]
        for function in functions(text, rust=is_rust(name))
    ]
    rng.shuffle(found)
    yield from found


def rename_local(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Give a local variable another name."""
    for name, text, function in _functions(source, rng):
        body = masked(text, rust=is_rust(name))[function.body : function.end]
        found = sorted(set((_RUST_LOCAL if is_rust(name) else _C_LOCAL).findall(body)))
        for old in found[:1]:
            new = f"{old}_{rng.choice(('value', 'item', 'here'))}"
            places = [place.start() for place in re.finditer(rf"(?<![\w.])(?<!->){re.escape(old)}\b", body)]
            changed = text
            for place in reversed(places):
                at = function.body + place
                changed = changed[:at] + new + changed[at + len(old) :]
            yield Edit(what=f"{old} is now {new} in {name}:{function.name}", files={name: changed})


def comment(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a comment at the start of a function."""
    for name, text, function in _functions(source, rng):
        lines = "\n    // A word on what follows.\n" if is_rust(name) else "\n    /* A word on what follows.\n     */\n"
        changed = text[: function.body] + lines * rng.randint(1, 3) + text[function.body :]
        yield Edit(what=f"comment in {name}:{function.name}", files={name: changed})


def header(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a licence at the top of a file: every line number moves."""
    for name in source.files(rng):
        lines = "".join(f"// Line {number} of a licence that nobody reads.\n" for number in range(rng.randint(3, 20)))
        yield Edit(what=f"licence in {name}", files={name: lines + source.text(name)})


def _unused(name: str, number: int) -> str:
    if is_rust(name):
        return (
            f'#[doc(hidden)]\n#[inline(never)]\n#[no_mangle]\npub extern "C" fn unused_{number}(limit: u32) -> u32 {{\n'
            "    let mut sum = 0u32;\n    for i in 0..limit {\n"
            "        sum = sum.wrapping_mul(31).wrapping_add(core::hint::black_box(i));\n    }\n    sum\n}\n\n"
        )
    return (
        f"unsigned unused_{number}(unsigned limit);\nunsigned unused_{number}(unsigned limit)\n{{\n"
        "    unsigned sum = 0, i;\n    for (i = 0; i < limit; i++) sum = sum * 31 + (i ^ (sum >> 3));\n"
        "    return limit > 7 ? sum % limit : sum;\n}\n\n"
    )


def unused_function(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a function that nothing calls, and that the linker keeps."""
    for name, text, function in _functions(source, rng):
        if text[: function.start].endswith("\n"):
            changed = text[: function.start] + _unused(name, rng.randint(10, 99)) + text[function.start :]
            yield Edit(what=f"a function before {name}:{function.name}", files={name: changed})


def reorder(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Swap two functions that follow each other."""
    for name in source.files(rng):
        text = source.text(name)
        found = functions(text, rust=is_rust(name))
        pairs = [
            (one, two)
            for one, two in itertools.pairwise(found)
            if is_rust(name) or "\n#" not in text[one.start : two.end]
            if masked(text, rust=is_rust(name))[one.end : two.start].strip() == ""
        ]
        rng.shuffle(pairs)
        for one, two in pairs[:4]:
            swapped = text[two.start : two.end] + text[one.end : two.start] + text[one.start : one.end]
            changed = text[: one.start] + swapped + text[two.end :]
            yield Edit(what=f"{one.name} and {two.name} swapped in {name}", files={name: changed})


def string(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Give a message another length."""
    for name in source.files(rng):
        text = source.text(name)
        places = [place for place in _STRING.finditer(text) if " " in place[0]]
        rng.shuffle(places)
        for place in places[:3]:
            more = rng.choice((" (see the manual)", ".", " Please read what the manual says about it."))
            changed = text[: place.start() + 1] + more.strip(".") + "- " + text[place.start() + 1 :]
            yield Edit(what=f"message in {name}: {place[0][:30]}", files={name: changed})


def constant(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a table that nothing reads, and that the linker keeps."""
    for name in source.files(rng):
        values = [rng.randint(0, 999) for _ in range(rng.randint(3, 60))]
        row = ", ".join(map(str, values))
        added = (
            f"\n#[no_mangle]\npub static UNUSED_TABLE: [u32; {len(values)}] = [{row}];\n"
            if is_rust(name)
            else f"\nextern unsigned unused_table[];\nunsigned unused_table[] = {{{row}}};\n"
        )
        yield Edit(what=f"a table in {name}", files={name: source.text(name).rstrip() + "\n" + added})


def new_file(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a file that is compiled and linked, and of which nothing is called."""
    number = rng.randint(10, 99)
    for name in source.files(rng):
        if name == "src/lib.rs":
            files = {f"src/unused_{number}.rs": _unused(name, number)}
            files[name] = source.text(name).rstrip() + f"\n\npub mod unused_{number};\n"
            yield Edit(what=f"new file unused_{number}.rs", files=files)
        elif not is_rust(name):
            ending = name.rpartition(".")[2]
            added = f"unused_{number}.{ending}"
            yield Edit(what=f"new file {added}", files={added: _unused(added, number)}, link=(added,))


def link_order(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Link the objects in another order."""
    del rng
    if not any(map(is_rust, source.executed)):
        yield Edit(what="objects linked in another order", reversed_objects=True)


def dependency(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Link another library, which is loaded and not used."""
    del source, rng
    yield Edit(what="another library linked", requirements=("library",))


def reformat(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Format a file of Rust with rustfmt; in C, indent by twice as much."""
    width = rng.choice((60, 140))
    for name in source.files(rng):
        text = source.text(name)
        changed = re.sub(r"^(?: {2,}|\t+)(?=[^ \t\n#])", lambda found: found[0] * 2, text, flags=re.MULTILINE)
        if is_rust(name):
            command = ["rustfmt", "--edition=2021", "--emit=stdout", f"--config=max_width={width}", "--quiet"]
            changed = subprocess.run(command, input=text, capture_output=True, text=True, check=False).stdout
        if changed not in {"", text}:
            yield Edit(what=f"{name} formatted", files={name: changed})


RULES: dict[str, tuple[Rule, int]] = {
    "rename-local": (rename_local, 2),
    "comment": (comment, 1),
    "header": (header, 1),
    "reorder": (reorder, 2),
    "unused-function": (unused_function, 2),
    "string": (string, 1),
    "constant": (constant, 1),
    "new-file": (new_file, 1),
    "link-order": (link_order, 1),
    "dependency": (dependency, 1),
    "reformat": (reformat, 1),
}
