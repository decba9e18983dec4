"""What all tests share: a clean environment, real Valgrinds, compiled programs and golden files.

Types for annotations (`CompileC`, `Golden`, …) are here as well; import them under `TYPE_CHECKING`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

import hypothesis
import pytest

from cachegrind_bench.log import heard_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.github_stub import Stub
    from tests.gitlab_stub import GitLab

# Only the first conftest may name plugins; tests of our own pytest plugin need this one.
pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
GOLDEN = Path(__file__).resolve().parent / "golden"

# Read before `_clean_environment` empties it.
REQUIRE_VALGRIND = os.environ.get("CG_BENCH_REQUIRE_VALGRIND") == "1"
REQUIRE_SEALED = os.environ.get("CG_BENCH_REQUIRE_SEALED") == "1"
INSTALLED_VALGRIND = os.environ.get("CG_BENCH_VALGRIND") or shutil.which("valgrind")

VALGRIND_VERSIONS = ("installed", "3.16", "3.24")
VALGRIND_FIXTURES = frozenset({"valgrind_path", "valgrind_versions", "each_valgrind"})

# `make test` takes what a contributor needs: no test above this, and nothing that only `make test-slow` installs.
SLOW_SECONDS = 5
# Turns of an empty loop that take a second where these seconds were chosen: CPython 3.11 on an idle cloud machine.
USUAL_LOOP = 100_000_000
SLOW_FOLDERS = ("actions_run", "browser")
SLOW_FIXTURES = frozenset(
    {"compile_rust", "criterion", "each_python", "google_benchmark", "postgres", "valgrind_versions"}
)
SLOW_PARAMETERS = ("3.16", "3.24", "clang", "numpy", "postgresql", "rust")

# Set by CI services, shells and terminals; each changes what a program prints or does.
CI_PREFIXES = ("CG_BENCH_", "CI_", "GITHUB_", "GITLAB_", "BUILDKITE", "CIRCLE", "TRAVIS", "JENKINS_", "TF_BUILD")
CI_NAMES = frozenset(
    {"CI", "BUILD_ID", "BUILD_NUMBER", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR"}
)

# Background jobs of a script ignore Ctrl-C, and those of nohup a closing terminal. Tests send both to programs of theirs,
# which would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A shared machine has slow moments; they say nothing about the code.
hypothesis.settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("shared-machine")


@pytest.fixture(autouse=True)
def _interrupts_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count interrupts anew in each test: a second one ends even what tidies up."""
    monkeypatch.setattr("cachegrind_bench.interruption._Held.interrupts", 0)


class CompileC(Protocol):
    """Compile C source text, or a file, with gcc and these flags (default -O1 -g); return the program."""

    def __call__(self, source: str | Path, *flags: str) -> Path: ...


class CompileRust(Protocol):
    """Compile Rust source text, or a file, with rustc and these flags (default -O -g); return the program."""

    def __call__(self, source: str | Path, *flags: str) -> Path: ...


class Golden(Protocol):
    """Compare text with tests/golden/NAME; with --update-golden write it there instead."""

    def __call__(self, name: str, text: str) -> None: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "each_valgrind" in metafunc.fixturenames:
        metafunc.parametrize("each_valgrind", VALGRIND_VERSIONS, indirect=True, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = Path(__file__).resolve().parent
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        folder = item.path.relative_to(tests).parts[0]
        if folder == "valgrind" or VALGRIND_FIXTURES.intersection(fixtures):
            item.add_marker("valgrind")
        callspec = getattr(item, "callspec", None)
        parameters = [] if callspec is None else [value for value in callspec.params.values() if type(value) is str]
        if folder in SLOW_FOLDERS or SLOW_FIXTURES.intersection(fixtures) or set(SLOW_PARAMETERS) & set(parameters):
            item.add_marker("slow")
    # With pytest-xdist, files with long tests first: none is to be left alone at the end.
    if hasattr(config, "workerinput"):
        long = {item.path for item in items if item.get_closest_marker("slow") is not None}
        items.sort(key=lambda item: item.path not in long)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("valgrind") is not None and INSTALLED_VALGRIND is None:
        without("no Valgrind on PATH (scripts/setup.sh installs it)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """In CI, fail what is too slow for `make test`: by CPU time, which other programs hardly change."""
    before, started = os.times(), time.monotonic()
    yield
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])  # its own and its children's
    took = min(cpu, time.monotonic() - started)
    if not REQUIRE_VALGRIND or took <= SLOW_SECONDS or item.get_closest_marker("slow") is not None:
        return
    if took > SLOW_SECONDS * _slowness():
        pytest.fail(f"took {took:.1f} s of CPU time, and is not marked 'slow'", pytrace=False)


def _slowness() -> float:
    """Return how many times slower than usual this machine is at the moment, at least 1: cloud machines vary by 3."""
    started = time.process_time()
    for _ in range(USUAL_LOOP):
        pass
    return max(1.0, time.process_time() - started)


def without(reason: str) -> NoReturn:
    """End a test that cannot run here: skipped by a developer's choice, a failure in CI."""
    if REQUIRE_VALGRIND:
        pytest.fail(f"{reason}, and CG_BENCH_REQUIRE_VALGRIND=1", pytrace=False)
    pytest.skip(reason)


# --- Environment ---------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _clean_environment(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name in list(os.environ):
        if name.startswith(CI_PREFIXES) or name in CI_NAMES:
            monkeypatch.delenv(name)
    # Where `run` remembers what it measured last; it makes the folder.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache" / str(os.getpid())))
    marked = {mark.name for mark in request.node.iter_markers()}
    if REQUIRE_SEALED and "valgrind" in marked and "unsealed" not in marked:
        monkeypatch.setenv("CG_BENCH_REQUIRE_SEALED", "1")


@pytest.fixture
def said() -> Iterator[list[str]]:
    """Collect what cg-bench says during the test, line by line."""
    lines = list[str]()
    with heard_by(lines.append, logging.INFO):
        yield lines


# --- GitHub --------------------------------------------------------------------------------------------------------------


def _reach_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def github_server() -> Iterator[Stub]:
    from tests import github_stub

    with github_stub.serve() as found:
        yield found


@pytest.fixture
def github(github_server: Stub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """Return the stand-in of GitHub's API, with nothing in it; at the end there was no request that GitHub frowns at."""
    _reach_directly(monkeypatch)
    github_server.clear()
    yield github_server
    assert github_server.violations == []


@pytest.fixture(scope="session")
def gitlab_server() -> Iterator[GitLab]:
    from tests import gitlab_stub

    with gitlab_stub.serve() as found:
        yield found


@pytest.fixture
def gitlab(gitlab_server: GitLab, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitLab]:
    """Return the stand-in of GitLab's API, with an empty merge request; at the end nothing was asked amiss."""
    _reach_directly(monkeypatch)
    gitlab_server.clear()
    yield gitlab_server
    assert gitlab_server.violations == []


# --- Valgrinds -----------------------------------------------------------------------------------------------------------


def _valgrind(version: str) -> Path:
    if version == "installed":
        if INSTALLED_VALGRIND is None:
            without("no Valgrind on PATH (scripts/setup.sh installs it)")
        return Path(INSTALLED_VALGRIND)
    path = TOOLS / f"valgrind-{version}" / "valgrind"
    if not path.exists():
        without(f"no Valgrind {version} in .tools (`scripts/setup.sh test-slow` says why)")
    return path


@pytest.fixture(scope="session")
def valgrind_path(request: pytest.FixtureRequest) -> Path:
    """Return the installed Valgrind, or the one a test names with `parametrize(…, ["3.16"], indirect=True)`."""
    return _valgrind(getattr(request, "param", "installed"))


@pytest.fixture(scope="session")
def each_valgrind(request: pytest.FixtureRequest) -> Path:
    """Return one Valgrind after the other: the test runs once under each."""
    return _valgrind(request.param)


@pytest.fixture(scope="session")
def valgrind_versions() -> Mapping[str, Path]:
    """Return all Valgrinds by the names in `VALGRIND_VERSIONS`, for a test that compares them."""
    return {version: _valgrind(version) for version in VALGRIND_VERSIONS}


# --- Programs ------------------------------------------------------------------------------------------------------------


def _compile(source: str | Path, suffix: str, compiler: str, flags: tuple[str, ...]) -> Path:
    """Compile once for each source, flags and compiler; kept between runs and shared by all workers."""
    command = shutil.which(compiler)
    if command is None:
        without(f"no {compiler} on PATH (`scripts/setup.sh test-slow` installs it)")
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    if version.returncode != 0:
        without(f"{compiler} does not run: {version.stderr.strip()}")
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    key = hashlib.sha256("\0".join([version.stdout, *flags, text]).encode()).hexdigest()[:16]
    build = TOOLS / "build"
    program = build / key / "program"
    if program.exists():
        return program
    build.mkdir(parents=True, exist_ok=True)
    # A folder of its own, renamed when it is whole: of two workers that compile the same, one wins and neither waits.
    # The compiler runs inside it, so that debug information does not name a temporary folder.
    work = Path(tempfile.mkdtemp(dir=build))
    (work / f"main{suffix}").write_text(text, encoding="utf-8")
    arguments = [command, "-o", "program", f"main{suffix}", *flags]
    done = subprocess.run(arguments, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(work)
        pytest.fail(f"{compiler} failed:\n{done.stderr}", pytrace=False)
    try:
        work.rename(program.parent)
    except OSError:  # the other worker was faster
        shutil.rmtree(work)
    return program


@pytest.fixture(scope="session")
def compile_c() -> CompileC:
    """Return the C compiler."""

    def compile_c(source: str | Path, *flags: str) -> Path:
        return _compile(source, ".c", "gcc", flags or ("-O1", "-g"))

    return compile_c


@pytest.fixture(scope="session")
def compile_rust() -> CompileRust:
    """Return the Rust compiler."""

    def compile_rust(source: str | Path, *flags: str) -> Path:
        return _compile(source, ".rs", "rustc", flags or ("-O", "-g"))

    return compile_rust


# --- Golden files --------------------------------------------------------------------------------------------------------


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return the comparison with tests/golden."""
    update = bool(request.config.getoption("--update-golden"))

    def golden(name: str, text: str) -> None:
        expected = GOLDEN / name
        actual = expected.with_name(expected.name + ".actual")
        if update:
            expected.parent.mkdir(parents=True, exist_ok=True)
            expected.write_bytes(text.encode())
        # Bytes, so that a carriage return is a difference.
        wanted = expected.read_bytes().decode() if expected.exists() else None
        if text == wanted:
            actual.unlink(missing_ok=True)
            return
        actual.parent.mkdir(parents=True, exist_ok=True)
        actual.write_bytes(text.encode())
        advice = f"see {actual.relative_to(ROOT)}; if it is right, run pytest with --update-golden"
        assert wanted is not None, f"no golden file {name}: {advice}"
        assert text == wanted, f"{name} differs: {advice}"

    return golden
