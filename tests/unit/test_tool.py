"""Finding Valgrind: behind wrappers, in odd places, or not at all. Its programs are stood in for; none is measured with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.process import Completed
from cachegrind_bench.valgrind import tool
from cachegrind_bench.valgrind.tool import INSTALL, Valgrind, find

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLATFORM = "amd64-linux" if os.uname().machine == "x86_64" else "arm64-linux"


class FakeValgrind:
    """Answers instead of the launcher: what `--version` prints, and whether options are known."""

    def __init__(self) -> None:
        self.version: bytes = b"valgrind-3.24.0\n"
        self.stderr = b""
        self.knows_guest_chase = True
        self.calls: list[tuple[list[str], dict[str, str]]] = []

    def __call__(self, argv: Sequence[str], *, env: Mapping[str, str], timeout: float) -> Completed:
        del timeout
        self.calls.append((list(argv), dict(env)))
        known = self.knows_guest_chase or "--vex-guest-chase=no" not in argv
        complaint = b"valgrind: Unknown option: " + (b"--cg-bench-probe" if known else b"--vex-guest-chase=no")
        is_version = "--version" in argv
        return Completed(
            status=0 if is_version else 1,
            signal=None,
            stdout=self.version if is_version else b"",
            stderr=self.stderr if is_version else complaint,
            timed_out=False,
            wall_ms=1,
        )


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> FakeValgrind:
    fake = FakeValgrind()
    monkeypatch.setattr(process, "run", fake)
    return fake


def program(path: Path, content: bytes = b"\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def tools(folder: Path) -> Path:
    program(folder / f"cachegrind-{PLATFORM}")
    return folder


def found(prefix: Path, explicit: str | None = None, **environ: str) -> Valgrind:
    return find(explicit, {"PATH": str(prefix / "bin"), **environ})


def refusal(prefix: Path, explicit: str | None = None, **environ: str) -> MeasurementError:
    with pytest.raises(MeasurementError) as caught:
        found(prefix, explicit, **environ)
    return caught.value


def test_a_plain_installation_is_found_on_path(tmp_path: Path, answers: FakeValgrind) -> None:
    launcher, libexec = program(tmp_path / "bin/valgrind"), tools(tmp_path / "libexec/valgrind")
    assert found(tmp_path) == Valgrind(
        launcher=str(launcher), libexec=str(libexec), version="3.24.0", guest_chase_off=True
    )
    # Nothing of the caller's environment reaches it, and Memcheck, a package of its own in places, is not needed.
    assert all(environ == {"VALGRIND_LIB": str(libexec)} for _argv, environ in answers.calls)
    assert all("--tool=cachegrind" in argv for argv, _environ in answers.calls)


@pytest.mark.parametrize("folder", ["lib/valgrind", "lib64/valgrind", "lib/x86_64-linux-gnu/valgrind"])
def test_the_tools_are_found_where_distributions_keep_them(tmp_path: Path, answers: FakeValgrind, folder: str) -> None:
    del answers
    program(tmp_path / "bin/valgrind")
    libexec = tools(tmp_path / folder)
    assert found(tmp_path).libexec == str(libexec)


def test_the_tools_are_found_where_the_launcher_was_built_for(tmp_path: Path, answers: FakeValgrind) -> None:
    del answers
    folder = tools(tmp_path / "odd/valgrind")
    program(tmp_path / "bin/valgrind", b"\x7fELF\0/usr/no/valgrind\0" + os.fsencode(folder) + b"\0rest")
    assert found(tmp_path).libexec == str(folder)


def test_the_tools_are_found_where_the_user_says(tmp_path: Path, answers: FakeValgrind) -> None:
    del answers
    program(tmp_path / "bin/valgrind")
    tools(tmp_path / "lib/valgrind")
    folder = tools(tmp_path / "mine")
    assert found(tmp_path, VALGRIND_LIB=str(folder)).libexec == str(folder)
    assert found(tmp_path, VALGRIND_LIB="/no/such").libexec == str(tmp_path / "lib/valgrind")


def test_missing_tools_are_reported(tmp_path: Path, answers: FakeValgrind) -> None:
    del answers
    program(tmp_path / "bin/valgrind")
    error = refusal(tmp_path)
    assert error.message.endswith(f"no directory holds cachegrind-{PLATFORM}")
    assert "VALGRIND_LIB" in (error.hint or "")


def test_debians_wrapper_gives_way_to_the_launcher_beside_it(tmp_path: Path, answers: FakeValgrind) -> None:
    del answers
    program(tmp_path / "bin/valgrind", b'#!/bin/sh\nexport X\nexec "$0.bin" "$@"\n')
    launcher = program(tmp_path / "bin/valgrind.bin")
    tools(tmp_path / "libexec/valgrind")
    assert found(tmp_path).launcher == str(launcher)


def test_a_wrapper_that_names_its_launcher_and_libraries_is_followed(tmp_path: Path, answers: FakeValgrind) -> None:
    del answers
    launcher = program(tmp_path / "elsewhere/vg")
    libraries = tools(tmp_path / "libs")
    text = f'#!/bin/sh\nexec /no/such/file "$@"\nVALGRIND_LIB="{libraries}" exec "{launcher}" "$@"\n'
    program(tmp_path / "bin/valgrind", text.encode())
    assert (found(tmp_path).launcher, found(tmp_path).libexec) == (str(launcher), str(libraries))


def test_a_wrapper_that_hides_its_launcher_is_refused(tmp_path: Path, answers: FakeValgrind) -> None:
    del answers
    path = program(tmp_path / "bin/valgrind", b'#!/bin/sh\nexec "$REAL" "$@"\n')
    error = refusal(tmp_path)
    assert error.message == f"{path} is a wrapper script, and the launcher behind it was not found"
    assert "--valgrind PATH" in (error.hint or "")


def test_a_link_on_path_is_followed(tmp_path: Path, answers: FakeValgrind) -> None:
    del answers
    launcher = program(tmp_path / "opt/bin/valgrind")
    tools(tmp_path / "opt/libexec/valgrind")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/valgrind").symlink_to(launcher)
    assert found(tmp_path).launcher == str(launcher)


def test_a_given_path_beats_the_one_on_path(tmp_path: Path, answers: FakeValgrind) -> None:
    del answers
    program(tmp_path / "bin/valgrind")
    mine = program(tmp_path / "mine/bin/vg")
    tools(tmp_path / "mine/libexec/valgrind")
    assert found(tmp_path, str(mine)).launcher == str(mine)


def test_where_only_the_launcher_itself_is_installed_it_is_found(tmp_path: Path, answers: FakeValgrind) -> None:
    del answers
    launcher = program(tmp_path / "bin/valgrind.bin")
    tools(tmp_path / "libexec/valgrind")
    assert found(tmp_path).launcher == str(launcher)


@pytest.mark.parametrize("manager", INSTALL)
def test_a_missing_valgrind_is_reported_with_the_line_for_this_system(tmp_path: Path, manager: str) -> None:
    program(tmp_path / "bin" / manager)
    error = refusal(tmp_path)
    assert error.message == "Valgrind was not found on PATH"
    assert error.hint == f"install it: {INSTALL[manager]}   (or give its path with --valgrind PATH)"


def test_without_a_known_package_manager_no_line_is_made_up(tmp_path: Path) -> None:
    error = refusal(tmp_path, "/no/such/valgrind")
    assert error.message == "Valgrind was not found at '/no/such/valgrind'"
    assert error.hint == (
        "install it, with the debug symbols of the C library   (or give its path with --valgrind PATH)"
    )


def test_of_two_package_managers_one_is_enough(tmp_path: Path) -> None:
    program(tmp_path / "bin/dnf")
    program(tmp_path / "bin/apt-get")
    assert "dnf" not in (refusal(tmp_path).hint or "")


@pytest.mark.parametrize(
    ("told", "version"),
    [(b"valgrind-3.16.1\n", "3.16.1"), (b"valgrind-4.0.GIT\n", "4.0"), (b"valgrind-3.24.0-1ubuntu\n", "3.24.0")],
)
def test_versions_are_read(tmp_path: Path, answers: FakeValgrind, told: bytes, version: str) -> None:
    program(tmp_path / "bin/valgrind")
    tools(tmp_path / "libexec/valgrind")
    answers.version = told
    assert found(tmp_path).version == version


def test_a_version_that_is_too_old_is_refused(tmp_path: Path, answers: FakeValgrind) -> None:
    path = program(tmp_path / "bin/valgrind")
    tools(tmp_path / "libexec/valgrind")
    answers.version = b"valgrind-3.9.0\n"
    assert refusal(tmp_path).message == f"{path} is version 3.9.0; 3.16 or newer is needed"
    answers.version = b"valgrind-3." + b"1" * 10_000  # more digits than Python makes a number of
    assert found(tmp_path).version == "3.111111111"


@pytest.mark.parametrize(("stderr", "words"), [(b"cannot execute\n", "cannot execute"), (b"", "status 0")])
def test_a_valgrind_that_does_not_work_is_reported_in_its_words(
    tmp_path: Path, answers: FakeValgrind, stderr: bytes, words: str
) -> None:
    path = program(tmp_path / "bin/valgrind")
    tools(tmp_path / "libexec/valgrind")
    answers.version, answers.stderr = b"", stderr
    assert refusal(tmp_path).message == f"{path} does not work: {words}"


def test_whether_guest_chasing_can_be_turned_off_is_probed(tmp_path: Path, answers: FakeValgrind) -> None:
    program(tmp_path / "bin/valgrind")
    tools(tmp_path / "libexec/valgrind")
    answers.knows_guest_chase = False
    assert found(tmp_path).guest_chase_off is False


def test_the_image_of_a_tool_bears_the_platform() -> None:
    some = Valgrind(launcher="", libexec="", version="", guest_chase_off=True)
    assert some.image("callgrind") == f"callgrind-{PLATFORM}"


@pytest.mark.skipif(not Path("/usr/bin/valgrind.bin").exists(), reason="no Valgrind from Debian here")
def test_this_systems_wrapper_is_seen_through() -> None:
    assert tool._real_launcher(Path("/usr/bin/valgrind")) == Path("/usr/bin/valgrind.bin")
