"""What becomes of tests that need a newer Python than there is: skipped, but in CI not all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import without
from tests.pythons import any_python, python_of, pythons

HERE = Path("/usr/bin/python3.13")


@pytest.fixture(params=[True, False], ids=["in-ci", "elsewhere"])
def required(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setitem(without.__globals__, "REQUIRE_VALGRIND", request.param)
    return bool(request.param)


def found(monkeypatch: pytest.MonkeyPatch, pythons: dict[str, Path]) -> None:
    monkeypatch.setattr("tests.pythons.pythons", lambda: pythons)


def test_without_any_a_test_fails_in_ci_and_is_skipped_elsewhere(
    monkeypatch: pytest.MonkeyPatch, *, required: bool
) -> None:
    found(monkeypatch, {})
    for ask in (any_python, lambda: python_of("3.13")):
        with pytest.raises(pytest.fail.Exception if required else pytest.skip.Exception, match=r"setup\.sh test"):
            ask()


@pytest.mark.usefixtures("required")
def test_one_version_that_is_missing_beside_another_is_skipped_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, {"3.13": HERE})
    with pytest.raises(pytest.skip.Exception, match=r"no CPython 3\.12 with perf trampolines"):
        python_of("3.12")
    assert python_of("3.13") == any_python() == HERE


def test_any_python_is_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, {"3.13": HERE, "3.12": Path("/opt/python")})
    assert any_python() == Path("/opt/python")


def test_an_interpreter_that_cannot_be_executed_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "python3.13"
    broken.write_text(f"#!{tmp_path}/no-loader\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setattr("tests.pythons._candidates", lambda: iter([broken, tmp_path / "missing"]))
    assert pythons.__wrapped__() == {}
