"""How long a browser takes with a page of 10,000 functions: `python benchmarks/page_speed.py`. Needs Playwright and Chromium.

Prints, for a result and for a comparison, of Python's functions and of a program's: the size of the page, the time from the beginning
of its loading to its first paint and to the last of its script, and the longest of several clicks that zoom, keys of a search, and
changes of the width, each up to the next paint. Each is the least of several pages, as other programs want the CPU, too.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import sync_playwright

from cachegrind_bench.model.call_graph import CallGraph, Calls, Code
from cachegrind_bench.model.python_profile import TOP, PythonFunction, PythonPath, PythonProfile
from tests.unit.resulting import page_of
from tests.unit.test_comparison_page import moved
from tests.unit.test_comparison_page import page_of as comparison_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

FUNCTIONS, REPEATS = 10_000, 7
_TIMED = """async (action) => {
  const next = () => new Promise((done) => requestAnimationFrame(() => { const channel = new MessageChannel();
    channel.port1.onmessage = done; channel.port2.postMessage(0); }));
  await next();
  const start = performance.now();
  %s;
  await next();
  return performance.now() - start;
}"""
_LOADED = """() => [
  performance.getEntriesByName("first-contentful-paint")[0].startTime,
  performance.timing.domInteractive - performance.timing.navigationStart,
]"""
_ZOOM = "const all = document.querySelectorAll('.frame'); all[Math.floor(action * all.length)].click()"
_BACK = "dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))"
_SEARCH = "const field = document.querySelector('.search'); field.value = 'f12345'.slice(0, action); field.dispatchEvent(new Event('input'))"
_VIEW = (
    "const view = document.querySelector('.view'); view.selectedIndex = action; view.dispatchEvent(new Event('change'))"
)


def tree(factor: int) -> PythonProfile:
    """Return as many paths as functions, each with up to eight callees."""
    dice = random.Random(5)
    return _profile([TOP, *(dice.randrange(max(n // 8 - 40, 0), n // 2 + 1) for n in range(1, FUNCTIONS))], factor)


def columns(factor: int) -> PythonProfile:
    """Return 480 paths that are as wide as one another and 20 calls deep: as many frames as can be wide enough to be seen."""
    return _profile([TOP if n % 20 == 0 else n - 1 for n in range(480 * 20)], factor, leaves=20)


def _profile(parents: list[int], factor: int, leaves: int = 1) -> PythonProfile:
    functions = tuple(PythonFunction(f"src/m{n % 50}.py", f"f{n}", n) for n in range(len(parents)))
    paths = tuple(
        PythonPath(parent=parent, function=n, calls=n + 1, ir=9_000 + n % 7 * factor if n % leaves == leaves - 1 else 0)
        for n, parent in enumerate(parents)
    )
    return PythonProfile(total=sum(path.ir for path in paths), functions=functions, paths=paths)


def program(found: PythonProfile) -> CallGraph:
    """Return the same paths as those of a program."""
    codes = [Code("/bin/x", item.file, item.name) for item in found.functions]
    calls = {
        (codes[path.parent], codes[n]): Calls(path.calls, found.inclusive[n])
        for n, path in enumerate(found.paths)
        if path.parent != TOP
    }
    return CallGraph({codes[n]: path.ir for n, path in enumerate(found.paths)}, calls)


def timed(page: Page, code: str, *actions: float) -> float:
    """Return the longest of these actions, in milliseconds."""
    return max(float(page.evaluate(_TIMED % code, action)) for action in actions)


def main() -> int:
    """Print the table."""
    pages = dict[str, str]()
    for name, shape in (("tree", tree), ("columns", columns)):
        one, other = shape(1), shape(300)
        native = program(one), program(other)
        pages |= {
            f"result, {name}, Python": page_of(one),
            f"result, {name}, both": page_of(one, calls=native[0]),
            f"comparison, {name}, Python": comparison_of(
                *([moved("x", item.total, python=item)] for item in (one, other))
            ),
            f"comparison, {name}, native": comparison_of(*([moved("x", item.total, calls=item)] for item in native)),
        }
    print(
        f"{'page':28} {'KB':>6} {'frames':>7} {'paint':>7} {'ready':>7} {'zoom':>6} {'back':>6} {'key':>6} {'view':>6}  ms"
    )
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, text in pages.items():
            path = Path(folder) / "page.html"
            path.write_text(text, encoding="utf-8")
            rows, drawn = [], 0
            for _ in range(REPEATS):
                page = browser.new_page(viewport={"width": 1600, "height": 1000})
                page.goto(path.as_uri())
                page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
                paint, ready = page.evaluate(_LOADED)
                zoom = timed(page, _ZOOM, 0.02, 0.3, 0.5)
                back = timed(page, _BACK, 0)
                key = timed(page, _SEARCH, 1, 2, 3)
                view = timed(page, _VIEW, 0, 2) if name.startswith("comparison") else 0
                drawn = page.locator(".frame").count()
                page.close()
                rows.append((paint, ready, zoom, back, key, view))
            best = [min(column) for column in zip(*rows, strict=True)]
            print(f"{name:28} {len(text.encode()) // 1000:6} {drawn:7} " + " ".join(f"{value:6.0f}" for value in best))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
