"""What the measured process gets of the options: what matters there, as bytes that do not depend on the rest."""

from __future__ import annotations

import marshal
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.pytest_plugin.outer.serialize_options import BLOCKED, file_orders, import_orders, left_behind
from cachegrind_bench.startup.exchange import FORMAT, write_order
from tests.suites import suite_python

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a project."""
    pytester.makeini("[pytest]\n")
    return pytester


def test_an_option_of_any_type_is_handed_over_or_named(project: pytest.Pytester) -> None:
    project.makeconftest(
        "from pathlib import Path\n"
        "def pytest_addoption(parser):\n"
        "    parser.addoption('--data', type=Path)\n"
        "    parser.addoption('--odd', type=lambda text: (lambda: text))\n"
        "    parser.addoption('--untouched', default=lambda: 1)\n"
    )
    config = project.parseconfig("--data=/somewhere", "--odd=x")
    assert left_behind(config) == ["--odd"]
    orders = file_orders(config, "test_it.py")
    assert list(orders["pickled"]) == ["data"]
    assert "odd" not in orders["options"]


def test_what_nobody_gave_is_not_handed_over_and_what_was_is_pickled_once(project: pytest.Pytester) -> None:
    project.makeconftest(
        "import enum\n"
        "class Size(enum.Enum): SMALL, LARGE = 1, 2\n"
        "class Loud:\n"
        "    def __reduce__(self): print('pickled'); return print, ('unpickled',)\n"
        "def pytest_addoption(parser):\n"
        "    parser.addoption('--size', default=Size.SMALL, type=lambda text: Size[text])\n"
        "    parser.addoption('--named', default='SMALL', type=lambda text: Size[text])\n"
        "    parser.addoption('--loud', type=lambda text: Loud())\n"
    )
    assert file_orders(project.parseconfig(), "test_it.py")["pickled"] == {}
    given = project.parseconfig("--size=LARGE", "--named=LARGE", "--loud=very")
    for name in ("one.py", "two.py"):
        assert list(file_orders(given, name)["pickled"]) == ["loud", "named", "size"]


def test_no_benchmark_sees_how_tests_are_shown_or_chosen(project: pytest.Pytester) -> None:
    plain = file_orders(project.parseconfig(), "test_it.py")
    words = (
        *(
            "-s",
            "-q",
            "-x",
            "--sw",
            "--sw-reset",
            "-k",
            "any",
            "--show-capture=no",
            "-l",
            "--log-file=log",
            "--cov-config=x",
        ),
        *("--cov-context=test", "--junit-prefix=x", "--log-file-level=INFO", "--log-file-mode=a"),
        *("--log-file-format=x", "--log-cli-level=INFO", "--log-cli-format=x", "--pdbcls=a:b", "--xfail-tb", "-vv"),
        *("--disable-warnings", "--trace-config", "--pyargs", "--keep-duplicates", "--tb=no", "-ra", "--color=yes"),
        *("-p", "no:randomly", "-p", "no:sugar", "--junit-xml=x"),
    )
    config = project.parseconfig(*words)
    other = file_orders(config, "test_it.py")
    assert {name for name, value in other["options"].items() if value != plain["options"][name]} == set()
    assert len(other["shown"]) == len(plain["shown"])
    assert marshal.dumps({**other, "shown": b""}, FORMAT) == marshal.dumps({**plain, "shown": b""}, FORMAT)
    assert import_orders(config)["blocked"] == list(BLOCKED)
    assert "cacheprovider" not in BLOCKED


def test_the_folder_for_temporary_files_is_put_into_no_other_argument(project: pytest.Pytester) -> None:
    orders = file_orders(project.parseconfig(), "/a/{tmp}/test_it.py")
    assert orders["args"][-1] == "/a/{tmp}/test_it.py"
    assert orders["in_tmp"] == [("--basetemp=", "/pytest"), ("--override-ini=cache_dir=", "/cache")]
    without = file_orders(project.parseconfig("-p", "no:cacheprovider"), "test_it.py")
    assert without["in_tmp"] == [("--basetemp=", "/pytest")]


def test_equal_values_are_written_alike_whether_or_not_they_are_one_object(tmp_path: Path) -> None:
    one, other = (" ".join(words) for words in ["ab", "ab"])
    write_order(str(tmp_path / "one"), [one, one])
    write_order(str(tmp_path / "two"), [one, other])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


_SHOWN = """
import marshal, pytest, sys
from cachegrind_bench.startup.exchange import FORMAT
from cachegrind_bench.pytest_plugin.outer.serialize_options import file_orders
class Shown:
    def pytest_collection_finish(self, session):
        orders = {**file_orders(session.config, "test_it.py"), "shown": b""}
        print("HERE", marshal.dumps(orders, FORMAT).hex(), "HERE")
pytest.main(["--collect-only", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[Shown()])
"""
_SETS = """
class Held:
    def __init__(self, names): self.names, self.more = set(names), [frozenset(names)]
def pytest_addoption(parser):
    parser.addoption("--names", type=lambda text: set(text.split(",")))
    parser.addoption("--held", type=lambda text: Held(text.split(",")))
"""


def _orders(project: pytest.Pytester, *words: str, seed: int = 0) -> dict[str, Any]:
    """Return the orders that a pytest of its own would give, called with these words and this hash seed."""
    argv = [str(suite_python("3.11")), "-c", _SHOWN, *words]
    env = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(argv, cwd=project.path, env=env, capture_output=True, text=True, check=False)
    assert "HERE" in done.stdout, done.stdout + done.stderr
    found: dict[str, Any] = marshal.loads(bytes.fromhex(done.stdout.split("HERE")[1]))  # noqa: S302 - ours
    return found


@pytest.mark.slow
def test_neither_options_of_plugins_that_stay_out_nor_the_hash_seed_move_anything(project: pytest.Pytester) -> None:
    project.makeconftest(_SETS)
    sets = ("--names=aa,bb,cc,dd,ee,ff", "--held=aa,bb,cc,dd,ee,ff")
    words = (
        "--reruns=1",
        "--timeout=3",
        "--forked",
        "-p",
        "randomly",
        "--benchmark-min-rounds=3",
        "--cov=x",
        "-n0",
    )
    plain, other = _orders(project, *sets, seed=1), _orders(project, *sets, *words, seed=2)
    without = _orders(project, *sets, "-p", "no:randomly", seed=3)
    assert plain == other
    assert marshal.dumps(plain, FORMAT) == marshal.dumps(other, FORMAT)
    assert plain["pickled"]["held"] == without["pickled"]["held"]
    assert plain["args"] == without["args"]


@pytest.mark.slow
@pytest.mark.usefixtures("valgrind_path")
def test_a_seed_that_a_plugin_draws_in_each_run_stays_outside(project: pytest.Pytester) -> None:
    drawn, given = (_orders(project, "--cg-bench", *words) for words in ([], ["--randomly-seed=5"]))
    assert {name for name, value in drawn["options"].items() if value != given["options"][name]} == set()
    assert drawn["options"]["randomly_seed"] == "default"
