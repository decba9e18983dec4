"""Python profiles for flame graphs and exports: a small one to read, a large one, and one of hostile names."""

from __future__ import annotations

import base64
import hashlib
import random
import re

from cachegrind_bench.model.python_profile import TOP, PythonFunction, PythonPath, PythonProfile
from tests.unit.pythons import chain, python_profile
from tests.unit.test_trend_page import HOSTILE, Page


def small() -> PythonProfile:
    """Return a program of nine functions, with recursion and native code."""
    rows = {"parse_row:42": (30, 400_000, {"field:61": (300, 90_000)}), "Row.__init__:12": (30, 25_000)}
    walk = chain(3, 10_000, "walk@src/pkg/tree.py:7")
    load = {"load:5": (1, 5_000, rows), "tiny:99": (1, 3), "tinier:100": (2, 1)}
    return python_profile(
        {"<module>@bench.py:1": (1, 5_000, load | walk), "atexit@/usr/lib/a.py:0": (1, 700)}, native=62_500
    )


def large(paths: int = 40_000) -> PythonProfile:
    """Return a tree of so many paths, some of them deep."""
    dice = random.Random(3)
    functions = tuple(
        PythonFunction(f"src/pkg/module_{n % 40}.py", f"Class{n % 9}.method_{n}", n) for n in range(2_000)
    )
    made = [
        PythonPath(
            parent=TOP if index == 0 else dice.randrange(max(index - 300, 0), index),
            function=dice.randrange(2_000),
            calls=dice.randrange(1, 10_000),
            ir=dice.randrange(2_000_000),
        )
        for index in range(paths)
    ]
    return PythonProfile(total=sum(path.ir for path in made) + 10**6, functions=functions, paths=tuple(made), cut=True)


def hostile(surrogate: str = "\ud800") -> PythonProfile:
    """Return a profile whose names would be markup, script, lines of their own or nothing at all."""
    names = [HOSTILE, "", "(1) x\nfn=(2) y", "a" * 5_000, surrogate, "totals: 1"]
    functions = tuple(PythonFunction(name, name, place) for place, name in enumerate(names))
    paths = tuple(PythonPath(parent=place - 1, function=place, calls=1, ir=1_000) for place in range(len(names)))
    return PythonProfile(total=6_500, functions=functions, paths=paths)


def check_page(text: str) -> None:
    """Check that a page is well formed, and loads and runs nothing but its own style and script."""
    page = Page(text)
    ids = [attributes["id"] for _tag, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        assert not {"src", "srcset", "style", "data", "action"} & attributes.keys(), tag
        assert not any(name.startswith("on") for name in attributes), tag
        if tag == "a":
            assert attributes["href"][1:] in ids
    assert not re.search(r"url\(|@import|https?:", "".join(page.raw["style"]))
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert "unsafe" not in policy
    for content, rule in ((page.raw["style"][0], "style-src"), (page.raw["script"][-1], "script-src")):
        assert f"{rule} 'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'" in policy
