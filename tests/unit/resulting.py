"""The page of a result of one benchmark, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cachegrind_bench.render.result_page import page
from tests.unit.samples import benchmark, result

if TYPE_CHECKING:
    from cachegrind_bench.model.python_profile import PythonProfile


def page_of(found: PythonProfile | None = None, name: str = "rows", **changes: Any) -> str:
    """Return the page of a benchmark with this profile of Python functions, and what else is said."""
    return page(result(benchmark(**{"id": name, "python": found, **changes})), "result.json", lambda item: item)
