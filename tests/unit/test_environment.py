"""The program's environment: an allow-list, fixed values, and a block whose size never changes."""

from __future__ import annotations

import os

import pytest

from cachegrind_bench.errors import UsageError
from cachegrind_bench.hermetic.environment import (
    FIXED,
    RESERVED,
    Request,
    compose,
    fingerprint_values,
    held_back,
    pad,
)

NOTHING = Request(values={})


def size(variables: dict[str, str], argv: list[str], executable: str) -> int:
    """Return the bytes of strings that the kernel puts on the program's stack."""
    texts = [f"{name}={value}" for name, value in variables.items()]
    return sum(len(os.fsencode(text)) + 1 for text in [*texts, *argv, executable])


def test_only_what_is_on_the_list_is_passed_on() -> None:
    caller = {"HOME": "/home/u", "PATH": "/bin", "GITHUB_SHA": "abc", "LANG": "de_DE", "OMP_NUM_THREADS": "64"}
    seen = compose(caller, NOTHING, {})
    assert seen.keys() == {*FIXED, "HOME", "PATH"}
    assert (seen["LC_ALL"], seen["OMP_NUM_THREADS"], seen["PYTHONHASHSEED"]) == ("C.UTF-8", "1", "0")


@pytest.mark.parametrize(
    "home", ["/", "/root", "/home/" + "u" * 247, "/home/" + "u" * 248, "/home/" + "u" * 249, "/hö"]
)
def test_home_means_the_same_and_is_of_constant_length(home: str) -> None:
    seen = compose({"HOME": home}, NOTHING, {})["HOME"]
    assert seen.lstrip("/") == home.lstrip("/")
    assert seen.startswith("///")  # two slashes may mean something else, three do not
    assert len(os.fsencode(seen)) in (256, 512)


def test_path_means_the_same_and_is_of_constant_length() -> None:
    seen = compose({"PATH": "/usr/bin:bin:/opt/x"}, NOTHING, {})["PATH"]
    assert len(seen) == 2048
    first, second, last = seen.split(":")
    assert (first, second, last.strip("/")) == ("/usr/bin", "bin", "opt/x")


@pytest.mark.parametrize("name", ["HOME", "PATH"])
@pytest.mark.parametrize("value", ["", "relative", "/bin:", "/bin:relative"])
def test_what_does_not_end_in_an_absolute_path_is_left_alone(name: str, value: str) -> None:
    if name == "PATH" or not value.startswith("/"):
        assert compose({name: value}, NOTHING, {})[name] == value


def test_requests_beat_what_is_fixed_and_the_runs_own_values_beat_all() -> None:
    request = Request(passed=("LANG", "ABSENT"), values={"PYTHONHASHSEED": "1", "PATH": "/mine"})
    seen = compose({"LANG": "C", "PATH": "/bin"}, request, {"TMPDIR": "/tmp/x"})
    assert seen == {**FIXED, "PYTHONHASHSEED": "1", "PATH": "/mine", "LANG": "C", "TMPDIR": "/tmp/x"}


def test_tunables_of_the_user_come_after_those_of_the_seal_and_so_win() -> None:
    ours, own = FIXED["GLIBC_TUNABLES"], "glibc.malloc.check=3"
    assert "glibc.cpu.x86_rep_movsb_threshold=1073741824" in ours.split(":")
    for caller, request in (
        ({}, Request(values={"GLIBC_TUNABLES": own})),
        ({"GLIBC_TUNABLES": own}, Request.parse(["GLIBC_TUNABLES"])),
    ):
        assert compose(caller, request, {})["GLIBC_TUNABLES"] == f"{ours}:{own}"
    assert compose({"GLIBC_TUNABLES": own}, NOTHING, {})["GLIBC_TUNABLES"] == ours
    assert not compose({}, Request(values={"GLIBC_TUNABLES": ""}), {})["GLIBC_TUNABLES"]


def test_names_and_values_are_read_from_env_options() -> None:
    request = Request.parse(["A", "B=", "C=x=y", "A"])
    assert request == Request(passed=("A", "A"), values={"B": "", "C": "x=y"})


@pytest.mark.parametrize("item", ["", "=", "=x", "A\0=x", "A=\0"])
def test_what_cannot_be_a_variable_is_refused(item: str) -> None:
    with pytest.raises(UsageError, match="does not name a variable") as caught:
        Request.parse([item])
    assert caught.value.hint == "write --env NAME or --env NAME=VALUE"


@pytest.mark.parametrize("name", [*RESERVED, "CG_BENCH_PAD", "CG_BENCH_PAD_007"])
@pytest.mark.parametrize("value", ["", "=x"])
def test_variables_of_the_seal_are_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"--env {name}: this variable belongs to the seal"):
        Request.parse([name + value])


def test_held_back_are_the_callers_variables_that_the_program_lacks() -> None:
    caller = {"PATH": "", "Z": "", "A": "", "B": "", "C": "", "_": "", "TZ": "", "TMPDIR": ""}
    assert held_back(caller, Request(passed=("B",), values={"C": "1"})) == ["A", "Z"]


BASE = {"HOME": "/root", "PATH": "/bin"}


@pytest.mark.parametrize(
    ("variables", "argv", "executable"),
    [
        (BASE, ["/bin/true"], "/bin/true"),
        ({**BASE, "PATH": "/a:" * 1000}, ["/bin/true"], "/bin/true"),
        ({**BASE, "HOME": "/home/a-much-longer-name"}, ["/bin/true"], "/bin/true"),
        ({**BASE, **{f"GITHUB_{number}": "x" for number in range(40)}}, ["/bin/true"], "/bin/true"),
        (BASE, ["/bin/true", "x" * 3000], "/a/deeper/place/true"),
        ({**BASE, "UMLAUT": "ü\udcff"}, ["/bin/true", "ä" * 100], "/bin/true"),
        (BASE, [""], ""),
    ],
)
def test_the_block_takes_the_same_bytes_whatever_is_in_it(
    variables: dict[str, str], argv: list[str], executable: str
) -> None:
    padded = pad(variables, argv, executable)
    assert size(padded, argv, executable) == 16384
    assert len(padded) == 64
    assert padded.items() >= variables.items()
    assert list(padded) == sorted(padded)


def test_bytes_that_valgrind_adds_are_left_free() -> None:
    assert size(pad(BASE, ["x"], "x", extra=123), ["x"], "x") == 16384 - 123


def test_a_large_command_makes_the_block_grow_by_whole_pages() -> None:
    for length in (20_000, 40_000, 100_000):
        argv = ["/bin/true", "x" * length]
        total = size(pad(BASE, argv, "/bin/true"), argv, "/bin/true")
        assert total % 4096 == 0
        assert length < total < length + 16384


def test_one_more_byte_than_fits_makes_one_page_more() -> None:
    free = len(pad(BASE, ["x"], "x")["CG_BENCH_PAD"])
    assert size(pad({**BASE, "HOME": "/root" + "x" * free}, ["x"], "x"), ["x"], "x") == 16384
    assert size(pad({**BASE, "HOME": "/root" + "x" * (free + 1)}, ["x"], "x"), ["x"], "x") == 16384 + 4096


def test_many_variables_make_their_number_grow_in_steps() -> None:
    numbers = {len(pad({str(index): "" for index in range(count)}, ["x"], "x")) for count in range(300)}
    assert numbers == {64, 128, 192, 256, 320}


def test_a_shift_makes_the_block_longer_by_just_that() -> None:
    for shift in (0, 64, 4032):
        assert size(pad(BASE, ["x"], "x", shift=shift), ["x"], "x") == 16384 + shift


def test_values_passed_on_are_reported_as_hashes_only() -> None:
    request = Request(passed=("TOKEN", "ABSENT", "\udcff"), values={"SET": "secret"})
    told = fingerprint_values(request, {"TOKEN": "secret", "OTHER": "x", "\udcff": "\udcfe"})
    assert list(told) == ["SET", "TOKEN", "\\xff"]
    assert told["SET"] == told["TOKEN"] == "2bb80d537b1d"
    assert all(len(value) == 12 for value in told.values())
