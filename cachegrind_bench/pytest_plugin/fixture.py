"""What suites written for pytest-benchmark and pytest-codspeed use: their fixtures, and their hooks by name.

As a module, the plugin that provides the fixtures. Knows how suites use them; must not know how calls are measured.
"""

# ruff: noqa: ARG005, PLR0917 - arguments are pytest-benchmark's, and their names are what a hook is
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from _pytest.config import PytestPluginManager

NAME = "cg-bench-fixtures"  # of this plugin


def _no_arguments() -> tuple[Sequence[Any], Mapping[str, Any]]:
    return (), {}


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What to call: `arguments` is asked before each call, and `finish` gets them after it; neither is counted.

    `has_set_up`: whether these two may be code of the project's own.
    """

    call: Callable[..., Any]
    arguments: Callable[[], tuple[Sequence[Any], Mapping[str, Any]]] = field(default=_no_arguments)
    finish: Callable[..., object] = field(default=_nothing)
    has_set_up: bool = False


_NAMES = frozenset({"benchmark", "codspeed_benchmark", "benchmark_weave"})


def uses_fixture(item: pytest.Item) -> bool:
    """Return whether a test has the fixture; one without it is measured as a whole, if at all."""
    return bool(_NAMES.intersection(getattr(item, "fixturenames", ())))


# What does the work, once or often, and returns what the last call returned.
ENGINE = pytest.StashKey["Callable[[Work], Any]"]()


def plainly(work: Work) -> Any:
    """Call once, as a plain test does."""
    args, kwargs = work.arguments()
    result = work.call(*args, **kwargs)
    work.finish(*args, **kwargs)
    return result


class FixtureAlreadyUsed(Exception):  # noqa: N818 - the name that pytest-benchmark has for it
    """A test has one benchmark."""


class BenchmarkFixture:
    """Measures one function for a test. Rounds and iterations are accepted and do not matter: counts do not vary."""

    def __init__(self, node: Any, engine: Callable[[Work], Any]) -> None:
        marker = node.get_closest_marker("benchmark")
        callspec = getattr(node, "callspec", None)
        self.name: str = node.name
        self.fullname: str = node.nodeid
        self.group: str | None = marker.kwargs.get("group") if marker else None
        self.param: str | None = callspec.id if callspec else None
        self.params: dict[str, Any] | None = callspec.params if callspec else None
        self.extra_info: dict[str, Any] = {}
        self.stats = None
        self.disabled = False
        self.has_error = False
        self.skipped = False
        self._engine = engine
        self._mode: str | None = None

    @property
    def enabled(self) -> bool:
        """Whether functions are measured; as pytest-benchmark has it, the opposite of `disabled`."""
        return not self.disabled

    def __call__(self, function_to_benchmark: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Measure a call of this function with these arguments, and return what it returns."""
        self._use("benchmark(...)", function_to_benchmark)
        return self._run(Work(call=function_to_benchmark, arguments=lambda: (args, kwargs)))

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., object] | None = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
    ) -> Any:
        """Measure calls of `target`; `setup` and `teardown` run uncounted before and after each."""
        self._use("benchmark.pedantic(...)", target)
        for name, value, least in (
            ("iterations", iterations, 1),
            ("rounds", rounds, 1),
            ("warmup_rounds", warmup_rounds, 0),
        ):
            if value < least:
                raise ValueError(f"Must have positive int for `{name}`.")
        if iterations > 1 and setup:
            raise ValueError("Can't use more than 1 `iterations` with a `setup` function.")
        given: tuple[Sequence[Any], Mapping[str, Any]] = tuple(args), {**(kwargs or {})}

        def arguments() -> tuple[Sequence[Any], Mapping[str, Any]]:
            made = setup() if setup else None
            if not made:
                return given
            if given[0] or given[1]:
                raise TypeError("Can't use `args` or `kwargs` if `setup` returns the arguments.")
            own_args, own_kwargs = made
            return own_args, own_kwargs or {}

        has_set_up = setup is not None or teardown is not None
        return self._run(Work(call=target, arguments=arguments, finish=teardown or _nothing, has_set_up=has_set_up))

    def weave(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Say that this is not supported."""
        self._mode = self._mode or "benchmark.weave(...)"
        raise NotImplementedError(
            "cg-bench does not weave: call benchmark(function, *args), or mark the test with @pytest.mark.benchmark"
        )

    patch = weave

    def _use(self, mode: str, target: Callable[..., Any]) -> None:
        if self._mode:
            self.has_error = True
            raise FixtureAlreadyUsed(f"Fixture can only be used once. Previously it was used in {self._mode} mode.")
        if inspect.iscoroutinefunction(target):
            raise TypeError(
                "benchmark() was given a coroutine function, and would measure only that a coroutine is made: mark the "
                "async test itself with @pytest.mark.benchmark"
            )
        self._mode = mode

    def _run(self, work: Work) -> Any:
        __tracebackhide__ = True
        try:
            return self._engine(work)
        except BaseException:
            self.has_error = True
            raise


@pytest.fixture
def benchmark(request: pytest.FixtureRequest) -> BenchmarkFixture:
    """Measure a function: `benchmark(function, *args, **kwargs)` returns what it returns."""
    return BenchmarkFixture(request.node, request.config.stash.get(ENGINE, plainly))


@pytest.fixture
def codspeed_benchmark(benchmark: BenchmarkFixture) -> BenchmarkFixture:
    """Be `benchmark` under the name that pytest-codspeed has for it."""
    return benchmark


@pytest.fixture
def benchmark_weave(benchmark: BenchmarkFixture) -> NoReturn:
    """Say that weaving is not supported."""
    benchmark.weave()


def provide(config: pytest.Config) -> None:
    """Register our benchmark fixtures, which go before those of plugins registered earlier."""
    config.pluginmanager.register(sys.modules[__name__], NAME)


def stand_in(config: pytest.Config, plugins: Sequence[str], spellings: Mapping[str, str]) -> None:
    """Let a conftest.py find these plugins by name, and options by how they are written, where the plugins are not loaded."""
    for name in plugins:
        config.pluginmanager.unblock(name)
        config.pluginmanager.register(ModuleType(name), name)
    owner: Any = config  # pytest 9.1 keeps them elsewhere
    known: dict[str, str] = getattr(owner._parser, "_opt2dest", None) or owner._opt2dest  # noqa: SLF001
    for option, name in spellings.items():
        known.setdefault(option, name)


def add_missing_hooks(manager: PytestPluginManager) -> None:
    """Make the hooks of pytest-benchmark known, unless they are: a conftest.py that has them must load without that plugin."""
    known = getattr(manager.hook, "pytest_benchmark_update_json", None)
    if known is None or not known.has_spec():
        manager.add_hookspecs(_HOOKS)


_first: Any = pytest.hookspec(firstresult=True)
_HOOKS: Any = SimpleNamespace(
    pytest_benchmark_scale_unit=_first(lambda config, unit, benchmarks, best, worst, sort: None),
    pytest_benchmark_generate_machine_info=_first(lambda config: None),
    pytest_benchmark_update_machine_info=lambda config, machine_info: None,
    pytest_benchmark_generate_commit_info=_first(lambda config: None),
    pytest_benchmark_update_commit_info=lambda config, commit_info: None,
    pytest_benchmark_group_stats=_first(lambda config, benchmarks, group_by: None),
    pytest_benchmark_generate_json=_first(lambda config, benchmarks, include_data, machine_info, commit_info: None),
    pytest_benchmark_update_json=lambda config, benchmarks, output_json: None,
    pytest_benchmark_compare_machine_info=lambda config, benchmarksession, machine_info, compared_benchmark: None,
)
