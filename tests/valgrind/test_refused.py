"""Where a container refuses a part of the seal: the run works, says what is missing, and fails only if asked to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench, Finished

pytestmark = [
    pytest.mark.unsealed,
    pytest.mark.skipif("os.uname().machine != 'x86_64'", reason="the filters below have numbers of x86-64"),
]

# Installs a filter that answers one system call (optionally only with one value of its second argument) with an error,
# then executes the rest of its command line. Stands in for the default seccomp profile of a container.
REFUSE = """
import ctypes, os, struct, sys
number, argument, error = (int(word) for word in sys.argv[1:4])
load, equal, give, allow, notify = 0x20, 0x15, 0x06, 0x7fff0000, 0x7fc00000
refuse = 0x00050000 | error
steps = [(load, 0, 0, 0), (equal, 0, 4, number & 0xffffffff)]
if argument:
    steps += [(load, 0, 0, 16 + 8), (equal, 0, 1, argument), (give, 0, 0, refuse), (give, 0, 0, allow)]
else:
    steps += [(give, 0, 0, refuse), *[(give, 0, 0, allow)] * 3]
steps += [(give, 0, 0, allow)]
code = b"".join(struct.pack("=HBBI", *step) for step in steps)
buffer = ctypes.create_string_buffer(code, len(code))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
program = Program(len(code) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
zero, one = ctypes.c_ulong(0), ctypes.c_ulong(1)
assert libc.prctl(38, one, zero, zero, zero) == 0
if number < 0:  # no refusal, but a listener of our own, which keeps others from making one
    descriptor = libc.syscall(ctypes.c_long(317), one, ctypes.c_ulong(8), ctypes.byref(program))
    assert descriptor >= 0, os.strerror(ctypes.get_errno())
    os.set_inheritable(descriptor, True)
else:
    assert libc.prctl(22, ctypes.c_ulong(2), ctypes.byref(program), zero, zero) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[4], sys.argv[4:])
"""

PERSONALITY, SECCOMP, IOCTL = 135, 317, 16
ADDFD = 0x40182103
EPERM, EINVAL, ENOSYS = 1, 22, 38

PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    unsigned char bytes[8];
    int fd = open("/dev/urandom", O_RDONLY);
    printf("<<< %d >>>\n", (int)read(fd, bytes, 8));
    return 0;
}
"""


def refusing(number: int, argument: int = 0, error: int = EPERM) -> list[str]:
    """Return the words that stand in front of `cg-bench`."""
    return [sys.executable, "-S", "-c", REFUSE, str(number), str(argument), str(error)]


CASES = {
    "personality": (refusing(PERSONALITY), {"aslr"}, "Operation not permitted"),
    "seccomp": (refusing(SECCOMP), {"randomness", "random_devices", "files"}, "Operation not permitted"),
    "an old kernel without seccomp": (
        refusing(SECCOMP, error=ENOSYS),
        {"randomness", "random_devices", "files"},
        "Function not implemented",
    ),
    "another supervisor's listener": (
        refusing(-1),
        {"randomness", "random_devices", "files"},
        "Device or resource busy",
    ),
    "handing out descriptors": (refusing(IOCTL, ADDFD, EINVAL), {"random_devices", "files"}, "Invalid argument"),
}


@pytest.fixture(params=list(CASES.values()), ids=list(CASES))
def refusal(request: pytest.FixtureRequest) -> tuple[list[str], set[str], str]:
    found: tuple[list[str], set[str], str] = request.param
    return found


def unavailable(finished: Finished) -> dict[str, str]:
    """Return the reasons of the parts that could not be pinned."""
    seal = finished.benchmark["seal"]
    return {name: part["why"] for name, part in seal.items() if part["state"] == "unavailable"}


def test_a_refused_part_is_reported_with_its_reason_and_is_not_fatal(
    cg_bench: CgBench, compile_c: CompileC, refusal: tuple[list[str], set[str], str]
) -> None:
    before, parts, why = refusal
    finished = cg_bench.run(compile_c(PROGRAM), before=before)
    assert finished.said == "8"
    missing = unavailable(finished)
    assert missing.keys() == parts
    assert all(why in reason for reason in missing.values()), missing
    assert all(part in finished.stdout for part in parts), "the report names what is missing"


def test_a_refused_part_ends_a_run_that_must_be_sealed(
    cg_bench: CgBench, compile_c: CompileC, refusal: tuple[list[str], set[str], str]
) -> None:
    before, parts, why = refusal
    finished = cg_bench.run(compile_c(PROGRAM), before=before, options=["--require-sealed"])
    assert finished.code == 4
    assert finished.result is None
    assert "Traceback" not in finished.stderr
    (sentence,) = (line for line in finished.stderr.splitlines() if line.startswith("cg-bench: error:"))
    assert "--require-sealed" in sentence
    assert why in sentence
    assert all(part in sentence for part in parts)


def test_without_a_refusal_a_run_that_must_be_sealed_succeeds(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(PROGRAM), options=["--require-sealed"])
    assert unavailable(finished) == {}


def test_other_results_are_not_comparable_with_one_made_without_pinned_randomness(
    cg_bench: CgBench, compile_c: CompileC
) -> None:
    sealed = cg_bench.run(compile_c(PROGRAM))
    refused = cg_bench.run(compile_c(PROGRAM), before=refusing(SECCOMP))
    unrandomised = cg_bench.run(compile_c(PROGRAM), before=refusing(PERSONALITY))
    assert refused.benchmark["key"] != sealed.benchmark["key"]
    assert unrandomised.benchmark["key"] == sealed.benchmark["key"], "ASLR is not part of the key"


def test_without_seccomp_a_program_that_forks_is_still_measured_and_doubted(cg_bench: CgBench, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("i=0; while [ $i -lt 100 ]; do i=$((i+1)); done; /bin/true; /bin/true\n")
    finished = cg_bench.run("sh", script, before=refusing(SECCOMP))
    assert {process["executable"].rpartition("/")[2] for process in finished.benchmark["processes"]} >= {"true"}
    assert finished.benchmark["processes_exact"] is False
    assert finished.benchmark["warnings"]
