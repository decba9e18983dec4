"""The words of `go test`: what chooses packages, what is built and which benchmarks there are, and what says nothing here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.harness.protocol import starts

# Options that have a value, and those that have none or `=VALUE`, by what becomes of them.
_BUILD_VALUED = {
    *(
        "asmflags",
        "buildmode",
        "compiler",
        "covermode",
        "coverpkg",
        "gccgoflags",
        "gcflags",
        "installsuffix",
        "ldflags",
    ),
    *("mod", "modfile", "overlay", "p", "pgo", "pkgdir", "tags", "toolexec"),
}
_BUILD = {"a", "asan", "buildvcs", "cover", "linkshared", "modcacherw", "msan", "race", "trimpath"}
_UNUSED_VALUED = {"benchtime", "count", "parallel", "run", "shuffle", "timeout", "vet"}
_UNUSED = {"benchmem", "failfast", "fullpath", "json", "v", "work", "x"}
_VALUED = _BUILD_VALUED | _UNUSED_VALUED | {"C", "bench", "cpu", "skip"}
_KNOWN = _VALUED | _BUILD | _UNUSED | {"short"}


class GoCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A user's words for `go test`, sorted: `bench` and `skip` are regular expressions, `program` is for the test's program."""

    packages: tuple[str, ...]
    build: tuple[str, ...]
    folder: str
    bench: str
    skip: str
    program: tuple[str, ...]
    cpu: str


def parse_command(words: Sequence[str], place: str) -> GoCommand:
    """Sort the words that follow `go test`. UsageError with its name for an option that cannot be followed."""
    given: dict[str, str] = {}
    packages: list[str] = []
    build: list[str] = []
    program: list[str] = []
    rest = iter(words)
    for word in rest:
        name, _, value = word.lstrip("-").removeprefix("test.").partition("=")
        if not word.startswith("-"):
            packages.append(word)
        elif name == "args":
            program += rest
        else:
            value = _value(word, name, value, rest, place)
            if name in _BUILD_VALUED | _BUILD:
                build.append(f"-{name}={value}")
            given[name] = value
    if given.get("short", "false") != "false":
        program.insert(0, "-test.short")
    return GoCommand(
        packages=tuple(packages) or (".",),
        build=tuple(build),
        folder=given.get("C", ""),
        bench=given.get("bench", "."),
        skip=given.get("skip", ""),
        program=tuple(program),
        cpu=given.get("cpu", "1"),
    )


def _value(word: str, name: str, value: str, rest: Iterator[str], place: str) -> str:
    """Return the value of an option, which may be the next word."""
    if name not in _KNOWN:
        raise UsageError(
            f"{place}: cg-bench does not know what the option {word} of 'go test' means for a benchmark",
            hint="leave it out; options of the benchmarks' own program follow -args",
        )
    if "=" in word:
        return value
    return next(rest, "") if name in _VALUED else "true"


def after_go_test(command: Sequence[str]) -> tuple[str, ...]:
    """Return what follows `go test`; packages and options may be given alone. UsageError for another command of Go."""
    if not starts(command, "go"):
        return tuple(command)
    if tuple(command[1:2]) != ("test",):
        raise UsageError(f"--harness go: {' '.join(command)} is not 'go test'", hint="as in: go test ./...")
    return tuple(command[2:])
