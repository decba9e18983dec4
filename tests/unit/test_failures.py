"""How an execution failed, in words."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from cachegrind_bench.errors import CommandFailedError, CommandTimeoutError, MeasurementError
from cachegrind_bench.valgrind.failures import check_outcome, quotation, refused_programs
from tests.unit.samples import outcome


def check(
    log: str = "", *, native: bool = False, ignore: bool = False, held: tuple[str, ...] = (), **changes: Any
) -> None:
    check_outcome(outcome(**changes), log, timeout_ms=1500, held_back=held, ignore_status=ignore, native=native)


def error(log: str = "", **changes: Any) -> MeasurementError:
    with pytest.raises(MeasurementError) as caught:
        check(log, **changes)
    return caught.value


def test_a_clean_end_is_not_a_failure() -> None:
    check()
    check("==7== Warning: set address range perms\n", native=True)


def test_a_failed_command_reports_its_status_its_last_words_and_the_variables_held_back() -> None:
    found = error(exit_status=3, tail=b"first\n\nTraceback\nKeyError: 'X'\n", held=("TOKEN", "X"))
    assert isinstance(found, CommandFailedError)
    assert (found.exit_status, found.signal) == (3, None)
    assert found.message == "the command failed with exit status 3 under Valgrind"
    assert found.hint == (
        "its last lines were:\n  | first\n  | Traceback\n  | KeyError: 'X'\n"
        "if it needs X, which the seal holds back, add --env X, or 'env' in the configuration\n"
        "--ignore-exit-status measures it all the same"
    )


def test_variables_that_it_did_not_speak_of_are_not_named() -> None:
    found = error(exit_status=3, tail=b"X_TOKEN is not a whole word\n", held=("TOKEN", "X"))
    assert "holds back" not in (found.hint or "")


def test_only_the_last_lines_are_reported() -> None:
    found = error(exit_status=1, tail=b"".join(b"line %d\n" % number for number in range(100)))
    assert found.hint is not None
    assert "| line 91\n" not in found.hint
    assert found.hint.count("  | ") == 8
    assert "| line 99" in found.hint


def test_frames_of_a_stack_do_not_displace_what_an_exception_says() -> None:
    java = "Suppressed: IllegalStateException: no corpus\n" + "\t\tat b.P.up(P.java:8)\n" * 9 + "\t... 3 more\n"
    go = "panic: no corpus\n" + "main.f()\n\t/src/a b.go:5 +0x65\n" * 6
    for said in (java, go, "Error: no corpus\n" + "    at file:///src/a.mjs:5:6\n" * 9):
        found = error(exit_status=1, tail=said.encode()).hint or ""
        assert "no corpus" in found
        assert "+0x65" not in found
    assert "    at f" in (error(exit_status=1, tail=b"    at f\n").hint or "")


def test_output_that_is_not_text_is_reported_escaped() -> None:
    assert "  | \\xff\\xfe" in (error(exit_status=1, tail=b"\xff\xfe").hint or "")


def test_a_silent_failure_is_called_silent() -> None:
    assert (error(exit_status=1, tail=b" \n").hint or "").startswith("it wrote nothing before it ended")


def test_all_variables_that_it_spoke_of_are_named() -> None:
    found = error(exit_status=1, tail=b"no A, no C", held=("A", "B", "C"))
    assert "if it needs A and C, which the seal holds back, add --env A --env C, or" in (found.hint or "")


def test_only_what_the_program_wrote_is_a_quotation() -> None:
    advice = (error(exit_status=1, tail=b"no A\n", held=("A",)).hint or "").splitlines()
    assert [line for line in advice if line not in quotation(advice)] == [
        "if it needs A, which the seal holds back, add --env A, or 'env' in the configuration",
        "--ignore-exit-status measures it all the same",
    ]


def test_a_failed_warm_up_says_so() -> None:
    assert error(exit_status=1, native=True).message.endswith("in the warm-up, without Valgrind")


def test_a_failure_can_be_ignored_but_not_a_signal() -> None:
    check(exit_status=3, ignore=True)
    assert isinstance(error(exit_status=None, signal=11, ignore=True), CommandFailedError)


def test_a_timeout_reports_the_time_it_was_given() -> None:
    found = error(timed_out=True, exit_status=None, signal=9)
    assert isinstance(found, CommandTimeoutError)
    assert found.message == "the command ran longer than 1.5 s under Valgrind and was stopped"
    assert "raise the timeout" in (found.hint or "")


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGSEGV, "SIGSEGV"), (signal.SIGKILL, "SIGKILL"), (40, "signal 40")]
)
def test_a_signal_is_named(number: int, name: str) -> None:
    found = error(exit_status=None, signal=int(number))
    assert isinstance(found, CommandFailedError)
    assert found.signal == number
    assert found.message == f"the command was killed by {name} under Valgrind"


AVX512 = (
    "==12== \nvex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7C 0x48 0x10 0x7 0x0 0x0 0x0 0x0\n==12== rest\n"
)


def test_avx512_is_recognised_by_its_first_byte() -> None:
    found = error(AVX512, exit_status=None, signal=signal.SIGILL)
    assert found.message == (
        "the command uses an AVX-512 instruction that Valgrind cannot simulate (bytes 0x62 0xF1 0x7C 0x48 0x10 0x7 0x0 0x0)"
    )
    assert "-march=x86-64-v3" in (found.hint or "")


@pytest.mark.parametrize(
    ("frame", "place"),
    [
        ("zap (z.c:2)", "zap (z.c:2)"),
        ("f (in /usr/lib/libf.so.1)", "f (in /usr/lib/libf.so.1)"),
        ("??? (in /usr/lib/libf.so.1)", "/usr/lib/libf.so.1"),
    ],
)
def test_an_unknown_instruction_has_its_function_or_library(frame: str, place: str) -> None:
    log = f"{AVX512}==12== valgrind: Unrecognised instruction at address 0x1.\n==12==    at 0x1: {frame}\n==12==    by 0x2: g\n"
    found = error(log, exit_status=None, signal=signal.SIGILL)
    assert f" in {place} that" in found.message


def test_another_unknown_instruction_is_not_called_avx512() -> None:
    found = error(AVX512.replace("0x62", "0xC5"), exit_status=None, signal=signal.SIGILL)
    assert found.message.startswith("the command uses an instruction that Valgrind cannot simulate (bytes 0xC5")


def test_sigill_without_valgrinds_word_is_a_plain_signal() -> None:
    assert "killed by SIGILL" in error(exit_status=None, signal=signal.SIGILL).message


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("valgrind: the 'impossible' happened:\n   LibVEX called failure_exit().\n", "LibVEX called failure_exit()."),
        ("==9== Valgrind: FATAL: can't read /x\n", "FATAL: can't read /x"),
        ("==9==     Valgrind's memory management: out of memory:\n", "Valgrind's memory management: out of memory:"),
        (
            "--9-- error: can't open cache simulation output file '/x'\n",
            "error: can't open cache simulation output file '/x'",
        ),
        ("==9== error: can't open output data file '/x'\n", "error: can't open output data file '/x'"),
        ("valgrind: Unknown option: --x\nvalgrind: Use --help\n", "valgrind: Unknown option: --x"),
        ("valgrind: failed to start tool 'x'\n", "valgrind: failed to start tool 'x'"),
        ("==3== valgrind: mmap(0x1, 2) failed in UME\n", "valgrind: mmap(0x1, 2) failed in UME"),
        ("Callgrind: threads.c:396 (f): Assertion 'x' failed.\n", "threads.c:396 (f): Assertion 'x' failed."),
    ],
)
def test_valgrinds_own_trouble_is_reported_in_its_words(log: str, words: str) -> None:
    assert error(log, exit_status=1, ignore=True).message == f"Valgrind failed: {words}"
    assert error(log, exit_status=None, signal=6).message == f"Valgrind was ended by SIGABRT: {words}"


def test_a_program_that_valgrind_would_not_execute_is_named() -> None:
    log = "==9== Command: sh\n==12== Warning: Can't execute setuid/setgid/setcap executable: ./su do\n==12== more\n"
    assert refused_programs(log) == ["./su do has more rights than its caller (setuid), so Valgrind did not run it"]
    assert refused_programs("==9== Command: sh\n") == []


def test_what_valgrind_says_before_it_has_a_log_is_its_own_failure() -> None:
    said = b"valgrind: failed to start tool 'cachegrind' for platform 'amd64-linux': No such file or directory\n"
    with pytest.raises(MeasurementError, match="Valgrind failed: valgrind: failed to start tool") as caught:
        check_outcome(
            outcome(exit_status=1, tail=said), "", timeout_ms=None, held_back=(), ignore_status=False, native=False
        )
    assert not isinstance(caught.value, CommandFailedError)
