"""A configuration without mistakes: where it is found, and what is made of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cachegrind_bench.config.benchmarks import BenchmarkSpec, Configuration
from cachegrind_bench.config.command import milliseconds
from cachegrind_bench.config.load import load
from cachegrind_bench.config.schema import BENCHMARK, DEFAULTS
from cachegrind_bench.config.source import find
from cachegrind_bench.errors import FileFormatError, UsageError

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "configuration.md"
OURS = "[tool.cg-bench]\n"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def loaded(text: str, name: str = "cg-bench.toml") -> Configuration:
    Path(name).write_text(text, encoding="utf-8")
    return load(Path.cwd() / name)


def only(text: str) -> BenchmarkSpec:
    (spec,) = loaded(f"[[benchmark]]\n{text}").benchmarks
    return spec


def ids(text: str) -> list[str]:
    return [spec.id for spec in loaded(f"[[benchmark]]\n{text}").benchmarks]


# Finding


def test_without_a_configuration_none_is_found(tmp_path: Path) -> None:
    assert find(tmp_path) is None


def test_the_nearest_file_from_the_folder_upwards_counts(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "cg-bench.toml").touch()
    assert find(below) == tmp_path / "cg-bench.toml"
    (tmp_path / "a" / "pyproject.toml").write_text(OURS)
    assert find(below) == tmp_path / "a" / "pyproject.toml"
    (tmp_path / "a" / "cg-bench.toml").touch()
    assert find(below) == tmp_path / "a" / "cg-bench.toml"


def test_a_pyproject_that_does_not_speak_to_us_is_passed_over(tmp_path: Path) -> None:
    below = tmp_path / "a"
    below.mkdir()
    (tmp_path / "cg-bench.toml").touch()
    foreign = ["", "[tool.other]\n", "[benchmark]\nother = 1\n", "[tool.broken\n", "tool = 5\n", "\xff"]
    for text in foreign:
        (below / "pyproject.toml").write_bytes(text.encode("latin-1"))
        assert find(below) == tmp_path / "cg-bench.toml"


@pytest.mark.parametrize(
    "text",
    ["[tool.cg_bench]\n", "[[benchmark]]\ncommand = 'x'\n", "[cg-bench]\n", f"{OURS}broken", "[tool . 'cg_bench']\n5"],
)
def test_a_pyproject_that_means_us_and_is_wrong_is_found_so_that_it_can_be_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert find(tmp_path) == tmp_path / "pyproject.toml"


def test_nothing_above_the_top_of_the_work_tree_counts(tmp_path: Path) -> None:
    (tmp_path / "cg-bench.toml").touch()
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / ".git").write_text("gitdir: elsewhere\n")  # as in a submodule
    assert find(inner) is None


@pytest.mark.parametrize("kind", ["loop", "dangling"])
def test_what_cannot_be_read_as_a_file_is_an_error_and_not_passed_over(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "cg-bench.toml"
    path.symlink_to(path if kind == "loop" else tmp_path / "gone")
    (tmp_path / "pyproject.toml").write_text('[[tool.cg-bench.benchmark]]\nid = "a"\ncommand = "true"\n')
    assert find(tmp_path) == path
    with pytest.raises(UsageError, match=r"cannot read .*cg-bench\.toml: "):
        load(path)


def test_a_folder_of_that_name_is_not_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "cg-bench.toml").mkdir()
    assert find(tmp_path) is None


# Reading


def test_an_empty_file_is_a_configuration_without_benchmarks(tmp_path: Path) -> None:
    found = loaded("")
    assert found == Configuration(path=tmp_path / "cg-bench.toml", root=tmp_path, defaults={}, benchmarks=())


def test_defaults_are_what_a_user_would_type_under_the_names_of_the_options() -> None:
    found = loaded(
        'I1 = "32768,4,64"\nmodel = "ir"\nthreshold = "1%"\nthreshold-ir = ["1%", "a*=2%"]\nthreshold-cache = "3%"\n'
        'max-drop = "40%"\nlimit = "a:Ir=5"\nmetric = "Ir"\nenv = { A = "1", B = "" }\ntimeout = 1.5\nrepeat = 3\n'
        "warmup = 0\nlayouts = 4\njobs = 2\n"
    )
    assert found.defaults == {
        "i1": "32768,4,64",
        "model": "ir",
        "threshold": ["1%"],
        "threshold_ir": ["1%", "a*=2%"],
        "threshold_cache": "3%",
        "max_drop": ["40%"],
        "limit": ["a:Ir=5"],
        "metric": "Ir",
        "env": ["A=1", "B="],
        "timeout": "1.5",
        "repeat": 3,
        "warmup": 0,
        "layouts": 4,
        "jobs": 2,
    }


def test_pyproject_holds_the_same_tables_behind_a_prefix() -> None:
    text = '{}\nrepeat = 2\n[[{}benchmark]]\nid = "a"\ncommand = "x"\n'
    own = loaded(text.format("", ""))
    project = loaded(text.format(OURS, "tool.cg-bench."), "pyproject.toml")
    assert own.defaults == project.defaults
    assert [spec.place for spec in project.benchmarks] == ["pyproject.toml:4"]


def test_a_benchmark_has_everything_its_table_says(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "in.txt").touch()
    spec = only(
        'id = "a"\ncommand = ["prog", "x y"]\ncwd = "sub"\nenv = ["HOST", "MODE=fast"]\nsetup = "make"\n'
        'prepare = "rm -f out"\ncleanup = "true"\nstdin = "in.txt"\ntags = ["quick", "io"]\nrepeat = 2\nwarmup = 0\n'
        'layouts = 3\ntimeout = "1.5min"\nthreshold = "2%"\nlimit = ["Ir=5", "score=1_000"]\n'
        "python-profile = true\n"
    )
    assert spec == BenchmarkSpec(
        id="a",
        command=("prog", "x y"),
        cwd=tmp_path / "sub",
        env=("HOST", "MODE=fast"),
        setup="make",
        prepare="rm -f out",
        cleanup="true",
        stdin=tmp_path / "sub" / "in.txt",
        parameters={},
        tags=("quick", "io"),
        repeat=2,
        warmup=0,
        layouts=3,
        timeout_ms=90_000,
        threshold="2%",
        limits=("Ir=5", "score=1_000"),
        python_profile=True,
        place="cg-bench.toml:1",
    )


def test_what_a_benchmark_does_not_say_is_none_and_it_runs_beside_its_configuration(tmp_path: Path) -> None:
    spec = only('id = "a"\ncommand = "x"')
    assert (spec.cwd, spec.env, spec.tags, spec.limits) == (tmp_path, (), (), ())
    assert {spec.setup, spec.prepare, spec.cleanup, spec.stdin, spec.repeat, spec.timeout_ms, spec.threshold} == {None}
    assert spec.python_profile is False


def test_one_benchmark_of_functions_has_no_python_profile_and_one_of_a_region_may() -> None:
    assert only('id = "a"\ncommand = "x"\nregion = "r"\npython-profile = true').python_profile
    assert not only('id = "a"\ncommand = "x"\ntoggle = "f"\npython-profile = false').python_profile
    with pytest.raises(
        FileFormatError, match=r":5: where only some functions are counted, there is no Python profile$"
    ):
        only('id = "a"\ncommand = "x"\ntoggle = "f"\npython-profile = true')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('prog a \'b c\' "d\\"e" f\\ g', ("prog", "a", "b c", 'd"e', "f g")),
        ("grep '|' \"a;b\" c\\;d", ("grep", "|", "a;b", "c;d")),
        ("a   b\t c\n d", ("a", "b", "c", "d")),
        ("./x --y=1 # z", ("./x", "--y=1", "#", "z")),
        ("x '$HOME' \"*.py\" \\~/y '~' \\$A", ("x", "$HOME", "*.py", "~/y", "~", "$A")),
        ("x HEAD~1 a$ $ $1 --filter=*.b http://h/?q", ("x", "HEAD~1", "a$", "$", "$1", "--filter=*.b", "http://h/?q")),
    ],
)
def test_a_command_as_text_is_split_as_a_shell_does(text: str, words: tuple[str, ...]) -> None:
    assert only(f"id = 'a'\ncommand = '''{text}'''").command == words


def test_a_command_as_a_list_is_taken_word_for_word() -> None:
    assert only('id = "a"\ncommand = ["sh", "-c", "a | b; \'", ""]').command == ("sh", "-c", "a | b; '", "")


def test_one_argument_with_a_blank_is_a_program_where_there_is_or_may_be_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "my prog").touch()
    assert only('id = "a"\ncommand = ["my prog"]').command == ("my prog",)
    assert only('id = "a"\ncommand = ["./your prog"]\nsetup = "make"').command == ("./your prog",)
    assert only('id = "a"\ncommand = ["{n}"]\nsetup = "make"\nparameters = { n = [""] }').command == ("",)
    assert only("""id = "a"\ncommand = "'quoted prog'" """).command == ("quoted prog",)


def test_patterns_of_thresholds_and_limits_may_fit_nothing_where_there_are_no_benchmarks() -> None:
    assert loaded("threshold = ['a*=2%']\nlimit = 'b:Ir=5'").defaults == {"threshold": ["a*=2%"], "limit": ["b:Ir=5"]}


def test_patterns_of_thresholds_and_limits_fit_ids_with_parameters() -> None:
    text = (
        "threshold = ['a*=2%', '*=1%']\nlimit = ['a[n=2]:Ir=5', 'Ir=6']\n[[benchmark]]\nid = 'a'\ncommand = 'x {n}'\n"
    )
    assert len(loaded(f"{text}parameters = {{ n = [1, 2] }}").benchmarks) == 2


def test_a_file_with_a_byte_order_mark_and_windows_line_ends_is_read() -> None:
    found = loaded('\ufeffrepeat = 2\r\n[[benchmark]]\r\nid = "a"\r\ncommand = "x"\r\n')
    assert found.defaults == {"repeat": 2}
    assert found.benchmarks[0].place == "cg-bench.toml:2"


def test_places_are_reported_as_seen_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only('id = "a"\ncommand = "x"')
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert load(tmp_path / "cg-bench.toml").benchmarks[0].place == "../cg-bench.toml:1"
    os.rmdir(tmp_path / "sub")
    assert load(tmp_path / "cg-bench.toml").benchmarks[0].place == f"{tmp_path}/cg-bench.toml:1"


def test_an_input_that_a_command_of_the_benchmark_may_make_need_not_be_there(tmp_path: Path) -> None:
    assert only('id = "a"\ncommand = "x"\nstdin = "made.txt"\nsetup = "make"').stdin == tmp_path / "made.txt"
    assert only('id = "a"\ncommand = "x"\nstdin = "made.txt"\nprepare = "make"').stdin == tmp_path / "made.txt"
    assert only('id = "a"\ncommand = "x"\nstdin = "/dev/zero"').stdin == Path("/dev/zero")


def test_files_are_not_looked_for_where_that_is_not_wanted(tmp_path: Path) -> None:
    Path("cg-bench.toml").write_text('[[benchmark]]\nid = "a"\ncommand = "x"\ncwd = "gone"\nstdin = "gone"\n')
    (spec,) = load(tmp_path / "cg-bench.toml", check_files=False).benchmarks
    assert spec.stdin == tmp_path / "gone" / "gone"


# Parameters


def test_each_combination_of_parameters_is_a_benchmark_the_last_one_varying_fastest() -> None:
    assert ids('id = "a"\ncommand = "x {n} {codec}"\nparameters = { n = [10, 9], codec = ["b", "a"] }') == [
        "a[n=10,codec=b]",
        "a[n=10,codec=a]",
        "a[n=9,codec=b]",
        "a[n=9,codec=a]",
    ]


def test_a_table_of_its_own_can_hold_the_parameters() -> None:
    assert ids('id = "a"\ncommand = "x {n}"\n[benchmark.parameters]\nn = [1, 2]') == ["a[n=1]", "a[n=2]"]


def test_values_stand_for_their_names_wherever_they_belong(tmp_path: Path) -> None:
    (tmp_path / "d7").mkdir()
    spec = only(
        'id = "a"\ncommand = ["x", "-n{n}", "{n}{n}"]\nparameters = { n = [7] }\ncwd = "d{n}"\nenv = ["N={n}"]\n'
        'setup = "s {n}"\nprepare = "p {n}"\ncleanup = "c {n}"\nstdin = "{n}.txt"'
    )
    assert spec.command == ("x", "-n7", "77")
    assert (spec.cwd, spec.stdin, spec.env) == (tmp_path / "d7", tmp_path / "d7" / "7.txt", ("N=7",))
    assert (spec.setup, spec.prepare, spec.cleanup) == ("s 7", "p 7", "c 7")
    assert spec.parameters == {"n": "7"}


def test_braces_around_anything_but_a_parameter_stay() -> None:
    spec = only(
        'id = "a"\ncommand = ["awk", "{ print }", "{}", "{1}", "%{other}", "@{u}", "{{other}}", "{{n}}", "{n}"]\nparameters = { n = [7] }\n'
        'setup = "echo ${n} ${HOME}"'
    )
    assert spec.command == ("awk", "{ print }", "{}", "{1}", "%{other}", "@{u}", "{{other}}", "{7}", "7")
    assert spec.setup == "echo ${n} ${HOME}"


def test_without_parameters_braces_within_an_argument_stay() -> None:
    spec = only("id = 'a-{n}'\ncommand = \"find -name x{m}.txt -exec awk '{print $1}' {} '+'\"")
    assert (spec.id, spec.command) == ("a-{n}", ("find", "-name", "x{m}.txt", "-exec", "awk", "{print $1}", "{}", "+"))


def test_a_value_with_braces_is_not_replaced_again() -> None:
    spec = only('id = "a"\ncommand = ["x", "{a}", "{b}"]\nparameters = { a = ["{b}"], b = ["2"] }')
    assert spec.command == ("x", "{b}", "2")


def test_values_are_texts_numbers_or_truth_values() -> None:
    text = 'id = "a"\ncommand = "x {v}"\nparameters = { v = [1, -2, 0.5, true, "", "é,]"] }'
    assert ids(text) == ["a[v=1]", "a[v=-2]", "a[v=0.5]", "a[v=true]", "a[v=]", "a[v=é,]]"]


def test_combinations_can_be_left_out() -> None:
    text = 'id = "a"\ncommand = "x {n} {c}"\nparameters = { n = [1, 2], c = ["a", "b"] }\nexclude = '
    assert ids(f'{text}[{{ n = 1, c = "b" }}]') == ["a[n=1,c=a]", "a[n=2,c=a]", "a[n=2,c=b]"]
    assert ids(f'{text}[{{ n = "1" }}, {{ n = 2, c = "a" }}]') == ["a[n=2,c=b]"]
    assert len(ids(f"{text}[]")) == 4


# Durations


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90_000), ("1.5min", 90_000), ("250ms", 250), (" 2 h ", 7_200_000), ("3m", 180_000)]
)
def test_a_duration_is_read_in_milliseconds(text: str, value: int) -> None:
    assert milliseconds(text) == value


# What is made of the table of keys


def test_the_schema_and_the_reference_are_current() -> None:
    script = ROOT / "scripts" / "generate_schema.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("key", [key for key in DEFAULTS.values() if key.example], ids=lambda key: key.name)
def test_the_example_of_every_default_is_right(key: object) -> None:
    name, example = key.name, key.example  # type: ignore[attr-defined]
    assert loaded(f"{name} = {example}").defaults


@pytest.mark.parametrize("key", BENCHMARK.values(), ids=lambda key: key.name)
def test_the_example_of_every_key_of_a_benchmark_is_right(key: object) -> None:
    Path("benchmarks").mkdir()
    Path("data").mkdir()
    Path("data/input.txt").touch()
    lines = {"id": '"a"', "command": '"x"', key.name: key.example}  # type: ignore[attr-defined]
    if lines.keys() & {"parameters", "exclude"}:
        lines |= {"command": '"x {n} {codec}"', "parameters": '{ n = [1000, 10000], codec = ["a", "b"] }'}
    if lines.keys() & {"sizes", "growth", "predict"}:
        lines = {"sizes": BENCHMARK["sizes"].example, **lines, "command": '"x {size}"'}
    if lines["command"].startswith("["):
        lines["parameters"] = "{ n = [1] }"
    if harness := key.harness:  # type: ignore[attr-defined]
        del lines["command"]
        lines |= {harness: BENCHMARK[harness].example, key.name: key.example}  # type: ignore[attr-defined]
        assert loaded("[[benchmark]]\n" + "\n".join(f"{name} = {value}" for name, value in lines.items())).entries
        return
    assert ids("\n".join(f"{name} = {value}" for name, value in lines.items()))


def test_no_two_keys_of_a_table_share_a_name_or_a_word_for_it() -> None:
    for keys in (DEFAULTS, BENCHMARK):
        words = [word for key in keys.values() for word in (key.name, *key.also)]
        assert len(words) == len(set(words))


def test_the_examples_of_the_documentation_are_right() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = [loaded(text, "pyproject.toml" if "tool.cg-bench" in text else "cg-bench.toml") for text in blocks]
    assert [spec.id for spec in found[0].benchmarks] == re.findall(
        r"`((?:startup|pack)(?:\[[^`]*\])?)`", PAGE.read_text(encoding="utf-8")
    )
    assert found[1].benchmarks[0].command == ("python3", "-m", "myapp", "--version")


def test_a_table_of_a_harness_is_an_entry_whose_benchmarks_have_its_id_before_theirs() -> None:
    Path("sub").mkdir()
    found = loaded("""[[benchmark]]\nid = "own"\ncommand = "x"\n
        [[benchmark]]\npytest = "a b -m 'not slow'"\ncwd = "sub"\ntags = ["py"]\nenv = ["X=1"]\n
        [[benchmark]]\nid = "web"\npytest = ["t"]\npython = "py"\n""")
    first, second = found.entries
    assert [spec.id for spec in found.benchmarks] == ["own"]
    assert (first.harness, first.keys) == ("pytest", {"pytest": ("a", "b", "-m", "not slow")})
    spec = first.spec("a::t[1]", ("run",), parameters={"n": "1"})
    assert (spec.id, spec.name, spec.command, spec.entry) == ("a::t[1]", "a::t[1]", ("run",), first)
    assert (spec.cwd.name, spec.tags, spec.env, spec.parameters) == ("sub", ("py",), ("X=1",), {"n": "1"})
    assert second.spec("t::t", ()).id == "web/t::t"
    assert second.keys["python"] == "py"


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ('command = "x"\npytest = "t"', "'command' is for a benchmark with a command, not for those of pytest"),
        ('pytest = "t"\nlimit = "Ir=1"', "'limit' is for a benchmark with a command"),
        ('id = "a"\ncommand = "x"\npython = "p"', "'python' is for benchmarks of pytest"),
        ('pytest = "t"\ncwd = "nowhere"', "cwd 'nowhere' does not exist"),
        ('pytest = "t | less"', "pytest has '|', but no shell reads it"),
        ("pytest = []", "pytest is empty"),
    ],
)
def test_what_does_not_go_with_a_harness_is_an_error_with_its_line(lines: str, error: str) -> None:
    with pytest.raises(FileFormatError, match=re.escape(error)):
        loaded(f"[[benchmark]]\n{lines}")
