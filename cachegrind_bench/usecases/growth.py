"""One command measured with several sizes of its input, as a suite of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cachegrind_bench.config.benchmarks import BenchmarkSpec
from cachegrind_bench.config.parameters import filled
from cachegrind_bench.errors import UsageError
from cachegrind_bench.measure.command import default_id
from cachegrind_bench.model.result import Scale
from cachegrind_bench.model.sizes import SIZE

if TYPE_CHECKING:
    from cachegrind_bench.usecases.measurement import MeasureRequest


def sized_specs(
    request: MeasureRequest, scale: Callable[[str, int], Scale], sizes: Sequence[int]
) -> tuple[BenchmarkSpec, ...]:
    """Return a benchmark for each size, which stands for `{size}` in command, variables, input, preparation and cleanup.

    UsageError if it is in none of them.
    """
    texts = [*request.command, *request.env, request.stdin or "", request.prepare or "", request.cleanup or ""]
    written = f"{{{SIZE}}}"
    if not any(written in text for text in texts):
        raise UsageError(
            f"{written} is not in the command", hint=f"as in: cg-bench growth --sizes 1000..16000x2 -- ./prog {written}"
        )
    fixed = [word for word in request.command if written not in word]
    group = request.id or default_id(fixed or request.command, request.cwd)

    def spec(size: int) -> BenchmarkSpec:
        chosen = {SIZE: str(size)}
        return BenchmarkSpec(
            id=f"{group}[{SIZE}={size}]",
            command=tuple(filled(word, chosen) for word in request.command),
            cwd=request.cwd,
            env=tuple(filled(item, chosen) for item in request.env),
            stdin=None if request.stdin is None else request.cwd / filled(request.stdin, chosen),
            prepare=request.prepare and filled(request.prepare, chosen),
            cleanup=request.cleanup and filled(request.cleanup, chosen),
            parameters=chosen,
            place="",
            scale=scale(group, size),
        )

    return tuple(map(spec, sizes))
