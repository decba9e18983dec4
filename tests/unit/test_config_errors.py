"""Mistakes in a configuration, made as a new user would make them: each is told in one sentence with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachegrind_bench.config.load import find, load
from cachegrind_bench.errors import FileFormatError, UsageError

BENCHMARK = '[[benchmark]]\nid = "a"\n'
COMMAND = f'{BENCHMARK}command = "x"\n'
PARAMETERS = f'{BENCHMARK}command = "x {{n}}"\nparameters = {{ n = [1, 2] }}\n'


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def told(text: str, name: str = "cg-bench.toml") -> str:
    """Return the sentence, from the line number on, and the advice."""
    Path(name).write_text(text, encoding="utf-8")
    path = find(Path.cwd())
    assert path is not None
    with pytest.raises(FileFormatError) as caught:
        load(path)
    assert caught.value.message.startswith(f"{name}:")
    hint = caught.value.hint
    return caught.value.message.removeprefix(f"{name}:") + (f" | {hint}" if hint else "")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('treshold = "1%"', "1: unknown key 'treshold' in the defaults; did you mean 'threshold'?"),
        ('threshold_ir = "1%"', "1: unknown key 'threshold_ir' in the defaults; did you mean 'threshold-ir'?"),
        ('\n\nd1 = "1,1,1"', "3: unknown key 'd1' in the defaults; did you mean 'D1'?"),
        ('[[benchmarks]]\nid = "a"', "1: unknown key 'benchmarks' in the defaults; did you mean 'benchmark'?"),
        (f"{COMMAND}repeats = 3", "4: unknown key 'repeats' in a benchmark; did you mean 'repeat'?"),
        (f"{COMMAND}params = {{ n = [1] }}", "4: unknown key 'params' in a benchmark; did you mean 'parameters'?"),
        (f"{COMMAND}matrix.n = [1]", "4: unknown key 'matrix' in a benchmark; did you mean 'parameters'?"),
        (
            f"{COMMAND}'working directory' = 'x'",
            "4: unknown key 'working directory' in a benchmark; did you mean 'cwd'?",
        ),
        ('[[benchmark]]\nname = "a"\ncmd = "x"', "2: unknown key 'name' in a benchmark; did you mean 'id'?"),
        ("[[benchmark]]\ncmd = 'x'", "2: unknown key 'cmd' in a benchmark; did you mean 'command'?"),
        (
            f'{COMMAND}model = "ir"',
            "4: 'model' belongs to the defaults, not to a benchmark: write it above the first [[benchmark]]",
        ),
        ('command = "x"', "1: 'command' belongs to a benchmark, not to the defaults: write it below [[benchmark]]"),
    ],
)
def test_a_key_that_does_not_exist_is_answered_by_the_nearest_one(text: str, sentence: str) -> None:
    assert told(text) == sentence


def test_a_key_that_is_near_to_none_is_answered_by_all() -> None:
    sentence = told("xyz = 1")
    assert sentence.startswith("1: unknown key 'xyz' in the defaults; known are I1, D1, LL, model, ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('repeat = "3"', '1: repeat must be a whole number, not the text "3" | as in repeat = 3'),
        ('repeat = "x"', '1: repeat must be a whole number, not the text "x" | as in repeat = 3'),
        ("repeat = 1.5", "1: repeat must be a whole number, not 1.5 | as in repeat = 3"),
        ("repeat = true", "1: repeat must be a whole number, not true | as in repeat = 3"),
        ("repeat = 0", "1: repeat must be from 1 to 1000, not 0"),
        ("layouts = 65", "1: layouts must be from 1 to 64, not 65"),
        ("threshold = 5", '1: threshold must be a text or a list of texts, not 5 | as in threshold = "5%"'),
        ("threshold = 0.5", '1: threshold must be a text or a list of texts, not 0.5 | as in threshold = "0.5%"'),
        ("threshold = [\n'1%',\n2]", '3: threshold must be a text, not 2 | as in threshold = "2%"'),
        ("I1 = 32768", '1: I1 must be a text, not 32768 | as in I1 = "32768,8,64"'),
        ("model = 1979-05-27", '1: model must be a text, not a date or time | as in model = "l1+5ll+30ram"'),
        ("env = 'A'", '1: env must be a list of texts, or a table, not the text "A" | as in env = ["A"]'),
        ("env = 5", '1: env must be a list of texts, or a table, not 5 | as in env = ["DATABASE_URL", "MODE=fast"]'),
        ("env = { A = 1 }", '1: the value of the variable A is a text, not a whole number: write A = "1"'),
        ("[env]\nA = 'b'\nB = []", '3: the value of the variable B is a text, not a list: write B = "…"'),
        ("timeout = [1]", '1: timeout must be seconds, or a text with a unit, not a list | as in timeout = "5min"'),
        ("timeout = true", '1: timeout must be seconds, or a text with a unit, not true | as in timeout = "5min"'),
        ("[[benchmark]]\nid = 5", '2: id must be a text, not 5 | as in id = "5"'),
        (f"{COMMAND}tags = [1]", '4: tags must be a text, not 1 | as in tags = "1"'),
        (f"{COMMAND}setup = ['make']", '4: setup must be a text, not a list | as in setup = "make -s"'),
        (f"{COMMAND}parameters = [1]", ("4: parameters must be a table of lists, not a list | as in parameters = "
         '{ n = [1000, 10000], codec = ["a", "b"] }')),
        (f"{PARAMETERS}exclude = {{ n = 1 }}", ("5: exclude must be a list of tables, not a table | as in exclude = "
         '[{ n = 10000, codec = "b" }]')),
        (f"{PARAMETERS}exclude = [1]", ('5: exclude must be a list of tables, not a list | as in exclude = '
         '[{ n = 10000, codec = "b" }]')),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_answered_by_one_of_the_right(text: str, sentence: str) -> None:
    assert told(text) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("threshold = '5'", "1: threshold '5' is not a percentage | did you mean 5%?"),
        ("threshold = '=5%'", "1: threshold '=5%' names no benchmark | as in threshold = \"0.5%\""),
        ("threshold-cache = 'a=5%'", "1: threshold-cache 'a=5%' is not a percentage | as in threshold-cache = \"2%\""),
        ("max-drop = 'x'", "1: max-drop 'x' is not a percentage | as in max-drop = \"50%\""),
        (
            "limit = 'startup:Irr=5'",
            ("1: limit 'startup:Irr=5' names no count: 'Irr' | as in limit = [\"startup:Ir=150_000_000\"]; "
            "one of: score, Ir, I1mr, ILmr, Dr, D1mr, DLmr, Dw, D1mw, DLmw, L1, LL, RAM"),
        ),
        ("limit = 'Ir=1e9'", "1: limit 'Ir=1e9' has no whole number: '1e9' | as in limit = [\"startup:Ir=150_000_000\"]"),
        (f"{COMMAND}limit = 'a:Ir=5'", "4: limit 'a:Ir=5' names a benchmark, but stands in the table of one | did you mean 'Ir=5'?"),
        ("timeout = '5 days'", "1: timeout '5 days' is not a time | as in timeout = \"5min\""),
        ("timeout = -1", "1: timeout '-1' is not a time | as in timeout = \"5min\""),
        ("timeout = inf", "1: timeout 'inf' is not a time | as in timeout = \"5min\""),
        ("env = ['A', '=x']", "1: env '=x' names no variable | as in env = [\"DATABASE_URL\", \"MODE=fast\"]"),
        ("env = { 'A=B' = 'x' }", "1: 'A=B' cannot name a variable"),
        ("env = { TMPDIR = 'x' }", "1: env TMPDIR: this variable belongs to the seal | every run gets its own value"),
        ("I1 = '32k,8,64'", "1: I1 '32k,8,64' is not a cache | as in I1 = \"32768,8,64\""),
        ("LL = '3000,1,64'", ("1: LL 3000,1,64: size / (associativity x line size), the number of sets, must be a power of two | "
         "a cache that works: LL 32768,8,64")),
        ("model = 'fast'", "1: model 'fast' is not a cost model | as in model = \"l1+5ll+30ram\""),
        ("metric = 'ir'", "1: metric 'ir' is none of score, Ir | did you mean 'Ir'?"),
        ("metric = 'time'", "1: metric 'time' is none of score, Ir"),
        ("[[benchmark]]\nid = ''", '2: id is empty | as in id = "parse"'),
        ('[[benchmark]]\nid = "a\\nb"', "2: id 'a\\nb' must be printable, without spaces at its ends | as in id = \"parse\""),
        (f'{COMMAND}setup = "\\u0000"', '4: setup holds a NUL character, which no program can be given | as in setup = "make -s"'),
    ],
)  # fmt: skip
def test_a_text_that_cannot_be_read_is_answered_by_an_example(text: str, sentence: str) -> None:
    assert told(text) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (BENCHMARK, '1: the benchmark \'a\' has no command | as in command = ["python3", "bench.py", "{n}"]'),
        ('[[benchmark]]\ncommand = "x"', '1: this benchmark has no id | as in id = "parse"'),
        (f"{COMMAND}\n{COMMAND}", "6: the id 'a' is taken by the benchmark at cg-bench.toml:1"),
        (f"{PARAMETERS}[[benchmark]]\nid = 'a[n=2]'\ncommand = 'x'",
         "6: the id 'a[n=2]' is taken by the benchmark at cg-bench.toml:1"),
        (f"{COMMAND}cwd = 'nowhere'", "4: cwd 'nowhere' does not exist | cwd is relative to the folder of the configuration, HERE"),
        (f"{COMMAND}cwd = ''", '4: cwd is empty | as in cwd = "benchmarks"'),
        (f"{COMMAND}cwd = 'cg-bench.toml'", ("4: cwd 'cg-bench.toml' is not a folder | cwd is relative to the folder of the "
         "configuration, HERE")),
        (f"{COMMAND}stdin = 'no.txt'", "4: stdin 'no.txt' does not exist | stdin is relative to the folder of the configuration, HERE"),
        (f"{COMMAND}cwd = '.git'\nstdin = 'no.txt'", "5: stdin '.git/no.txt' does not exist | stdin is relative to cwd"),
        (f"{COMMAND}stdin = '.git'", "4: stdin '.git' is a folder | stdin is relative to the folder of the configuration, HERE"),
    ],
)  # fmt: skip
def test_what_a_benchmark_lacks_is_told(text: str, sentence: str) -> None:
    assert told(text) == sentence.replace("HERE", str(Path.cwd()))


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ('"x \'y"', "the command has a quote that is not closed: x 'y | write it as a list: command = [\"prog\", \"it's\"]"),
        ("'x \\'", "the command has a backslash at its end: x \\ | write it as a list: command = [\"prog\", \"it's\"]"),
        ("'x | y'", ("the command has '|', but no shell runs it: quote it if it is part of an argument | "
         'else write command = ["sh", "-c", "x | y"]')),
        ("'make&&x'", ("the command has '&&', but no shell runs it: quote it if it is part of an argument | "
         'else write command = ["sh", "-c", "make&&x"]')),
        ("'x < in'", ("the command has '<', but no shell runs it: quote it if it is part of an argument | "
         'else write stdin = "FILE", or command = ["sh", "-c", "x < in"]')),
        ("'A=1 x'", "the command begins with a variable, but no shell runs it: write env = ['A=1']"),
        ("''", 'the command is empty | as in command = ["python3", "bench.py", "{n}"]'),
        ("[]", 'the command is empty | as in command = ["python3", "bench.py", "{n}"]'),
        ("['x', 10]", 'every argument of the command is a text, not a whole number: write "10"'),
        ("['x', ['y']]", 'every argument of the command is a text, not a list: write "…"'),
        ("5", 'command must be a list of texts, or a text, not 5 | as in command = ["python3", "bench.py", "{n}"]'),
        ('["x\\u0000"]', "the command holds a NUL character, which no program can be given"),
        ("['x', '{n}']", ("{n} names no parameter of this benchmark; define it: parameters = { n = […] } | "
         "a text with spaces, as in '{ n }', is none")),
    ],
)  # fmt: skip
def test_a_command_that_is_none_is_told(command: str, sentence: str) -> None:
    assert told(f"{BENCHMARK}command = {command}") == f"3: {sentence}"


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("command = 'x'\nparameters = { n = [] }", "4: the parameter 'n' has no values: its list is empty"),
        ("command = 'x'\nparameters = { n = 5 }", "4: the values of the parameter 'n' are a list, not a whole number | write n = [5]"),
        ("command = 'x'\nparameters = { n = 'y' }", "4: the values of the parameter 'n' are a list, not a text | write n = [\"y\"]"),
        ("command = 'x'\nparameters.n = {}", "4: the values of the parameter 'n' are a list, not a table | as in n = [1000, 10000]"),
        ("command = 'x'\nparameters = { n = [1, '1'] }", "4: the parameter 'n' has the value 1 twice"),
        ("command = 'x'\nparameters = { n = [\n[1]] }", "5: a value of the parameter 'n' is a text or a number, not a list"),
        ('command = \'x\'\nparameters = { n = ["\\n"] }', "4: a value of the parameter 'n' is not printable: '\\n'"),
        ("command = 'x'\nparameters = { 'n m' = [1] }", ("4: 'n m' cannot name a parameter: letters, digits, _ and - can, "
         "beginning with a letter")),
        ("command = 'x'\nparameters = { n = [1] }", ("4: the parameter 'n' is never used | write {n} where its value belongs, "
         'as in command = ["prog", "{n}"]')),
        ("command = 'x a{size}'\nparameters = { n = [1] }", "3: {size} names no parameter of this benchmark; known are {n}"),
        ("command = 'x a{sise}'\nparameters = { size = [1] }", "3: {sise} names no parameter of this benchmark; did you mean {size}?"),
        ("command = 'x {n} {m}'\nparameters = { n = [1] }", ("3: {m} names no parameter of this benchmark; known are {n} | "
         "a text with spaces, as in '{ m }', is none")),
        ("command = 'x {n}'\nsetup = 'make {N}'\nparameters = { n = [1] }", ("4: {N} names no parameter of this benchmark; "
         "did you mean {n}?")),
        ("command = 'x'\nexclude = [{ n = 1 }]", "4: exclude leaves out combinations of parameters, but there are no parameters"),
        ("command = 'x {n} {m}'\nparameters = { n = [" + ",".join(map(str, range(101))) + "], m = ["
         + ",".join(map(str, range(100))) + "] }", "4: these parameters make 10100 benchmarks, more than 10000"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_fit_are_told(table: str, sentence: str) -> None:
    assert told(BENCHMARK + table) == sentence


@pytest.mark.parametrize(
    ("exclude", "sentence"),
    [
        ("[{ m = 1 }]", "exclude names 'm', which is no parameter of this benchmark"),
        ("[{ N = 1 }]", "exclude names 'N', which is no parameter of this benchmark; did you mean 'n'?"),
        ("[{ n = 3 }]", "exclude names a value that the parameter 'n' does not have; it has 1, 2"),
        ("[{ n = [1] }]", "exclude names a value that the parameter 'n' does not have; it has 1, 2"),
        ("[{}]", "this part of exclude is empty, which would leave out everything"),
        ("[{ n = 1 }, { n = 2 }]", "exclude leaves no combination of the parameters"),
    ],
)
def test_combinations_that_cannot_be_left_out_are_told(exclude: str, sentence: str) -> None:
    assert told(f"{PARAMETERS}exclude = {exclude}") == f"5: {sentence}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[benchmark]\nid = 'a'", "1: each benchmark is a table of its own: write [[benchmark]], in double brackets"),
        ("[benchmark.a]\ncommand = 'x'", "1: each benchmark is a table of its own: write [[benchmark]], in double brackets"),
        ("benchmark = ['x']", "1: each benchmark is a table of its own: write [[benchmark]], in double brackets"),
        ("a = 1\n[tool.cg-bench]", ("2: the tables of cg-bench.toml have no prefix: write [[benchmark]], and defaults above it "
         "without any table")),
        ("[[cg-bench.benchmark]]", ("1: the tables of cg-bench.toml have no prefix: write [[benchmark]], and defaults above it "
         "without any table")),
    ],
)  # fmt: skip
def test_tables_in_a_wrong_place_are_told(text: str, sentence: str) -> None:
    assert told(text) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (COMMAND, "1: in pyproject.toml a benchmark begins with [[tool.cg-bench.benchmark]]"),
        (f"[tool.cg-bench]\n{COMMAND}", "2: in pyproject.toml a benchmark begins with [[tool.cg-bench.benchmark]]"),
        ("[benchmark]\ncommand = 'x'", "1: in pyproject.toml a benchmark begins with [[tool.cg-bench.benchmark]]"),
        ("[project]\n[tool.cg_bench]", "2: unknown table [tool.cg_bench]; did you mean [tool.cg-bench]?"),
        ("[[tool.cachegrind-bench.benchmark]]", "1: unknown table [tool.cachegrind-bench]; did you mean [tool.cg-bench]?"),
        ("[cg-bench]", "1: in pyproject.toml our table is called [tool.cg-bench], not [cg-bench]"),
        ("[[tool.cg-bench]]", "1: write [tool.cg-bench] in single brackets: there is one such table"),
        ("tool.cg-bench = 5", "1: write [tool.cg-bench] in single brackets: there is one such table"),
        ("[tool.cg-bench.benchmark]\nid = 'a'", ("1: each benchmark is a table of its own: write [[tool.cg-bench.benchmark]], "
         "in double brackets")),
        ("[tool.cg-bench]\nid = 'a'", ("2: 'id' belongs to a benchmark, not to the defaults: write it below "
         "[[tool.cg-bench.benchmark]]")),
        ("[[tool.cg-bench.benchmark]]\nid = 'a'\njobs = 2", ("3: 'jobs' belongs to the defaults, not to a benchmark: write it above "
         "the first [[tool.cg-bench.benchmark]]")),
    ],
)  # fmt: skip
def test_tables_of_pyproject_in_a_wrong_place_are_told(text: str, sentence: str) -> None:
    assert told(text, "pyproject.toml") == sentence


@pytest.mark.parametrize(
    ("text", "line", "advice"),
    [
        ("\ncommand = python x.py", 2, "a text stands in quotes; true, false and numbers do not"),
        ('id = "a\nb = 1', 1, "a text must end in the line it begins in, in a quote"),
        ("id = 'a\nb = 'c'", 1, "a text must end in the line it begins in, in a quote"),
        ("id = 'a\nb = 1", 1, "a text must end in the line it begins in, in a quote"),
        ("x = [1,\n2\n\n", 2, "a bracket, brace or quote is not closed"),
        ("repeat = 1\nrepeat = 2", 2, "the same key or table is written twice"),
        ("repeat 3", 1, "a key is followed by = and its value; a key with spaces or dots stands in quotes"),
        ('x = "\\d"', 1, "a backslash is written \\\\, or the text in single quotes"),
        ("[benchmark]\n[benchmark]", 2, "each benchmark begins with double brackets: [[benchmark]]"),
        ("[[benchmark]\n", 1, "a header ends with as many brackets as it begins with"),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(text: str, line: int, advice: str) -> None:
    sentence = told(text)
    assert sentence.startswith(f"{line}: not valid TOML: ")
    assert sentence.endswith(f" | {advice}")


def test_what_is_no_toml_in_pyproject_is_told_with_the_prefix() -> None:
    sentence = told("[tool.cg-bench.benchmark]\n[tool.cg-bench.benchmark]", "pyproject.toml")
    assert sentence.endswith(" | each benchmark begins with double brackets: [[tool.cg-bench.benchmark]]")


def test_text_that_is_not_utf_8_is_told_with_its_line() -> None:
    Path("cg-bench.toml").write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(FileFormatError, match=r"^cg-bench\.toml:2: not UTF-8 text$"):
        load(Path.cwd() / "cg-bench.toml")


@pytest.mark.parametrize("text", [f"x = {'[' * 5000}", f"x = {'1' * 5000}"])
def test_what_no_reader_would_take_is_told(text: str) -> None:
    Path("cg-bench.toml").write_text(text)
    with pytest.raises(FileFormatError, match="not valid TOML: too deep, or a number too long"):
        load(Path.cwd() / "cg-bench.toml")


def test_a_file_that_cannot_be_read_is_told() -> None:
    with pytest.raises(UsageError, match=r"cannot read gone\.toml: No such file or directory"):
        load(Path.cwd() / "gone.toml")
