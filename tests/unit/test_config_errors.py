"""Mistakes in a configuration, made as a new user would make them: each is told in one sentence with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachegrind_bench.config.load import load
from cachegrind_bench.config.source import find
from cachegrind_bench.errors import FileFormatError, UsageError

BENCHMARK = '[[benchmark]]\nid = "a"\n'
COMMAND = f'{BENCHMARK}command = "x"\n'
QUOTES = " | a text needs quotes; numbers, true and false (in small letters) do not"
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
        ('\n\nd1 = "1,1,1"', "3: unknown key 'd1' in the defaults; did you mean 'D1'?"),
        ('[[benchmarks]]\nid = "a"', "1: unknown table [[benchmarks]]; did you mean [[benchmark]]?"),
        (f"{COMMAND}params = {{ n = [1] }}", "4: unknown key 'params' in a benchmark; did you mean 'parameters'?"),
        (
            "[defaults]\nrepeat = 2",
            "1: unknown table 'defaults'; the defaults are above all tables, without a heading",
        ),
        (
            f"{COMMAND}skip = true",
            (
                "4: unknown key 'skip' in a benchmark; a benchmark is left out by # before its lines, or by -k 'not ID', "
                "and combinations of its parameters by 'exclude'"
            ),
        ),
        ('[[benchmark]]\nname = "a"\ncmd = "x"', "2: unknown key 'name' in a benchmark; did you mean 'id'?"),
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
    assert sentence.startswith("1: unknown key 'xyz' in the defaults; known are I1, D1, LL, estimate, model, ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('repeat = "3"', '1: repeat must be a whole number, not the text "3" | as in repeat = 3'),
        ("repeat = 1.5", "1: repeat must be a whole number, not 1.5 | as in repeat = 3"),
        ("repeat = 0", "1: repeat must be from 1 to 1000, not 0"),
        ("threshold = 5", '1: threshold must be a text or a list of texts, not 5 | as in threshold = "5%"'),
        ("threshold = [\n'1%',\n2]", '3: threshold is a list of texts, and this item is 2 | write "2%"'),
        ("I1 = 32768", '1: I1 must be a text, not 32768 | as in I1 = "32768,8,64"'),
        ("model = 1979-05-27", '1: model must be a text, not a date or time | as in model = "l1+5ll+30ram"'),
        ("env = 'A'", '1: env must be a list of texts, or a table, not the text "A" | as in env = ["A"]'),
        ("env = { A = 1 }", '1: the value of the variable A is a text, not a whole number: write A = "1"'),
        ("[env]\nA = 'b'\nB = []", '3: the value of the variable B is a text, not a list: write B = "…"'),
        ("timeout = [1]", '1: timeout must be seconds, or a text with a unit, not a list | as in timeout = "5min"'),
        ("[[benchmark]]\nid = 5", '2: id must be a text, not 5 | as in id = "5"'),
        (f"{COMMAND}tags = [1]", '4: tags is a list of texts, and this item is 1 | write "1"'),
        (f"{COMMAND}prepare = ['rm x', 'y']", ('4: prepare must be a text, not a list | as in prepare = "rm x && y"; it is one '
         "shell command, several are joined by &&")),
        (f"{COMMAND}threshold = ['1%']", ('4: threshold must be a text, not a list | as in threshold = "1%"; a list of thresholds '
         "is above the first [[benchmark]]")),
        (f"{COMMAND}threshold = ['1%', 'b=2%']", ('4: threshold must be a text, not a list | as in threshold = "2%"; a list of '
         "thresholds is above the first [[benchmark]]")),
        (f"{COMMAND}python-profile = 'True'", '4: python-profile must be true or false, not the text "True" | as in python-profile = true'),
        ("env = ''", '1: env must be a list of texts, or a table, not the text "" | as in env = ["DATABASE_URL", "MODE=fast"]'),
        ("env = 'A=1,B=2'", '1: env must be a list of texts, or a table, not the text "A=1,B=2" | as in env = ["A=1", "B=2"]'),
        (f"{COMMAND}[[benchmark.env]]\nA = '1'", "4: env is one table: write [benchmark.env], in single brackets"),
        (f"{COMMAND}parameters = [1]", ("4: parameters must be a table of lists, not a list | as in parameters = "
         '{ n = [1000, 10000], codec = ["a", "b"] }')),
        (f"{PARAMETERS}exclude = {{ n = 1 }}", ("5: exclude must be a list of tables, not a table | as in exclude = "
         '[{ n = 10000, codec = "b" }]')),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_answered_by_one_of_the_right(text: str, sentence: str) -> None:
    assert told(text) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("threshold = '5'", "1: threshold '5' is not a percentage | did you mean \"5%\"?"),
        ("threshold = '=5%'", "1: threshold '=5%' has nothing before the = | as in threshold = \"0.5%\""),
        ("max-drop = 'x'", "1: max-drop 'x' is not a percentage | as in max-drop = \"50%\""),
        (
            "limit = 'startup:Irr=5'",
            ("1: limit 'startup:Irr=5': 'Irr' is not a count | as in limit = [\"startup:Ir=150_000_000\"]; "
            "one of: score, Ir, I1mr, ILmr, Dr, D1mr, DLmr, Dw, D1mw, DLmw, L1, LL, RAM, allocations"),
        ),
        ("limit = 'Ir=1e9'", "1: limit 'Ir=1e9': '1e9' is not a whole number | did you mean \"Ir=1_000_000_000\"?"),
        (f"{COMMAND}limit = 'a:Ir=5'", "4: limit 'a:Ir=5' names a benchmark, but is in the table of one | did you mean 'Ir=5'?"),
        ("limit = 'a:Ir<=1.5G'", '1: limit \'a:Ir<=1.5G\' is not a NAME=COUNT | did you mean "a:Ir=1_500_000_000"?'),
        (f"{COMMAND}limit = 'Ir<5M'", "4: limit 'Ir<5M' is not a NAME=COUNT | did you mean \"Ir=5_000_000\"?"),
        (f"{COMMAND}limit = '150000'", "4: limit '150000' is not a NAME=COUNT | as in limit = \"Ir=150_000_000\""),
        (f"{COMMAND}limit = 'Ir=1.5'", "4: limit 'Ir=1.5': '1.5' is not a whole number | as in limit = \"Ir=150_000_000\""),
        ("threshold-cache = '0,5%'", "1: threshold-cache '0,5%' is not a percentage | did you mean \"0.5%\"?"),
        ("threshold = ['1%',\n'a=0,5%']", "2: threshold '0,5%' is not a percentage | did you mean \"a=0.5%\"?"),
        (f"{COMMAND}tags = 'quick slow'", "4: tags 'quick slow' holds more than one word | did you mean [\"quick\", \"slow\"]?"),
        ("env = ['A B=secret']", "1: env 'A B': the name of a variable has no blank | did you mean [\"A\", \"B=…\"]?"),
        ("timeout = '5 days'", "1: timeout '5 days' is not a time | as in timeout = \"5min\""),
        ("env = ['A', '=x']", "1: env '=x' does not name a variable | as in env = [\"DATABASE_URL\", \"MODE=fast\"]"),
        ("env = { 'A=B' = 'x' }", "1: 'A=B' cannot name a variable"),
        ("env = { TMPDIR = 'x' }", "1: env TMPDIR: this variable belongs to the seal | every run gets its own value"),
        ("I1 = '32k,8,64'", "1: I1 '32k,8,64' is not a cache | as in I1 = \"32768,8,64\""),
        ("LL = '3000,1,64'", ("1: LL 3000,1,64: size / (associativity x line size), the number of sets, must be a power of two | "
         "a cache that works: LL 32768,8,64")),
        ("model = 'fast'", "1: model 'fast' is not a cost model | as in model = \"l1+5ll+30ram\""),
        ("metric = 'ir'", "1: metric 'ir' is not one of score, Ir | did you mean 'Ir'?"),
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
def test_what_a_benchmark_lacks_is_reported(text: str, sentence: str) -> None:
    assert told(text) == sentence.replace("HERE", str(Path.cwd()))


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ('"x \'y"', "the command has a quote that is not closed: x 'y | write it as a list: command = [\"prog\", \"it's\"]"),
        ("'x \\'", "the command has a backslash at its end: x \\ | write it as a list: command = [\"prog\", \"it's\"]"),
        ("'x | y'", ("the command has '|', but no shell runs it: quote it if it is part of an argument | "
         'else write command = ["sh", "-c", "x | y"]')),
        ("'x < in'", ("the command has '<', but no shell runs it: quote it if it is part of an argument | "
         'else write stdin = "FILE", or command = ["sh", "-c", "x < in"]')),
        ("'cat $HOME/x'", ("the command has '$HOME', but no shell runs it: quote it if it is part of an argument | "
         'else write command = ["sh", "-c", "cat $HOME/x"]')),
        ("'x $(y)'", ("the command has '$(', but no shell runs it: quote it if it is part of an argument | "
         'else write command = ["sh", "-c", "x $(y)"]')),
        ("'~/bin/x'", ("the command has '~/bin/x', but no shell runs it: quote it if it is part of an argument | "
         'else write command = ["sh", "-c", "~/bin/x"]')),
        ("'x a?.py'", ("the command has 'a?.py', but no shell runs it: quote it if it is part of an argument | "
         'else write command = ["sh", "-c", "x a?.py"]')),
        ("['python3 x.py']", ("the command is one argument with a blank, and there is no program 'python3 x.py' | write it as a "
         'text, command = "python3 x.py", or as several items, command = ["python3", "x.py"]')),
        ("'A=1 x'", "the command begins with a variable, but no shell runs it: write env = ['A=1']"),
        ("''", 'command is empty | as in command = ["python3", "bench.py", "{n}"]'),
        ("['x', 10]", 'command is a list of texts, and this item is 10 | write "10"'),
        ('["x\\u0000"]', 'command holds a NUL character, which no program can be given | as in command = ["python3", "bench.py", "{n}"]'),
        ("['x', '{n}']", ("{n} is not a parameter of this benchmark; define it: parameters = { n = […] } | "
         "a text with spaces, as in '{ n }', is not one")),
    ],
)  # fmt: skip
def test_a_command_that_is_invalid_is_reported(command: str, sentence: str) -> None:
    assert told(f"{BENCHMARK}command = {command}") == f"3: {sentence}"


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("command = 'x'\nparameters = { n = [] }", "4: the parameter 'n' has no values: its list is empty"),
        ("command = 'x'\nparameters = { n = 5 }", "4: the values of the parameter 'n' are a list, not a whole number | write n = [5]"),
        ("command = 'x'\nparameters = { n = [1, '1'] }", "4: the parameter 'n' has the value 1 twice"),
        ("command = 'x'\nparameters = { n = [\n[1]] }", "5: a value of the parameter 'n' is a text or a number, not a list"),
        ('command = \'x\'\nparameters = { n = ["\\n"] }', "4: a value of the parameter 'n' is not printable: '\\n'"),
        ("command = 'x'\nparameters = { 'n m' = [1] }", ("4: 'n m' cannot name a parameter: letters, digits, _ and - can, "
         "beginning with a letter")),
        ("command = 'x'\nparameters = { n = [1] }", ("4: the parameter 'n' is never used | write {n} where its value belongs, "
         'as in command = ["prog", "{n}"]')),
        ("command = 'x'\nparameters = { n = '1..10' }", ("4: the values of the parameter 'n' are a list, not a text | there are no "
         "ranges: list the values, as in n = [1, 2, 3]")),
        ("command = 'x'\nparameters = { n = 'b, c' }", "4: the values of the parameter 'n' are a list, not a text | write n = [\"b\", \"c\"]"),
        ("command = 'x a{sise}'\nparameters = { size = [1] }", "3: {sise} is not a parameter of this benchmark; did you mean {size}?"),
        ("command = 'x {n} {m}'\nparameters = { n = [1] }", ("3: {m} is not a parameter of this benchmark; known are {n} | "
         "a text with spaces, as in '{ m }', is not one")),
        ("command = 'x {n}'\nsetup = 'make {N}'\nparameters = { n = [1] }", ("4: {N} is not a parameter of this benchmark; "
         "did you mean {n}?")),
        ("command = 'x'\nexclude = [{ n = 1 }]", "4: exclude leaves out combinations of parameters, but there are no parameters"),
        ("command = 'x {n} {m}'\nparameters = { n = [" + ",".join(map(str, range(101))) + "], m = ["
         + ",".join(map(str, range(100))) + "] }", "4: these parameters make 10100 benchmarks, more than 10000"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_fit_are_reported(table: str, sentence: str) -> None:
    assert told(BENCHMARK + table) == sentence


@pytest.mark.parametrize(
    ("identity", "meant"), [("a-{n}", "a"), ("{n}", "parse"), ("a[{n}]", "a"), ("a/{m}", "a"), ("{n}_a", "_a")]
)
def test_a_parameter_in_the_id_is_reported(identity: str, meant: str) -> None:
    sentence = told(PARAMETERS.replace('"a"', f'"{identity}"'))
    assert sentence.startswith("2: {")
    assert sentence.endswith(
        f'in the id has no effect: the values of parameters are added to it automatically | write id = "{meant}"'
    )


@pytest.mark.parametrize(
    ("defaults", "sentence"),
    [
        ("threshold = ['0.5%',\n'nothing*=2%']", "2: threshold 'nothing*=2%' does not match any benchmark of this file: 'nothing*' | there are: b, parse[n=1], parse[n=2]"),
        ("limit = 'pares:Ir=5'", "1: limit 'pares:Ir=5' does not match any benchmark of this file: 'pares' | did you mean 'parse*'?"),
        ("max-drop = 'parse=5%'", "1: max-drop 'parse=5%' does not match any benchmark of this file: 'parse' | did you mean 'parse*'?"),
        ("threshold-ir = 'B=5%'", "1: threshold-ir 'B=5%' does not match any benchmark of this file: 'B' | did you mean 'b'?"),
        ("limit = ['Ir=5', 'parse[n=3]:Ir=5']", "1: limit 'parse[n=3]:Ir=5' does not match any benchmark of this file: 'parse[n=3]' | did you mean 'parse[n=2]'?"),
    ],
)  # fmt: skip
def test_a_pattern_that_fits_no_benchmark_is_reported(defaults: str, sentence: str) -> None:
    parse = PARAMETERS.replace('"a"', '"parse"')
    assert told(f"{defaults}\n[[benchmark]]\nid = 'b'\ncommand = 'x'\n{parse}") == sentence


@pytest.mark.parametrize(
    ("exclude", "sentence"),
    [
        ("[{ m = 1 }]", "exclude names 'm', which is not a parameter of this benchmark"),
        ("[{ N = 1 }]", "exclude names 'N', which is not a parameter of this benchmark; did you mean 'n'?"),
        ("[{ n = 3 }]", "exclude names a value that the parameter 'n' does not have; it has 1, 2"),
        ("[{ n = [1] }]", "exclude names a value that the parameter 'n' does not have; it has 1, 2"),
        ("[{}]", "this part of exclude is empty, which would leave out everything"),
        ("[{ n = 1 }, { n = 2 }]", "exclude leaves no combination of the parameters"),
    ],
)
def test_combinations_that_cannot_be_left_out_are_reported(exclude: str, sentence: str) -> None:
    assert told(f"{PARAMETERS}exclude = {exclude}") == f"5: {sentence}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[benchmark]\nid = 'a'", "1: each benchmark is a table of its own: write [[benchmark]], in double brackets"),
        ("[benchmark.a]\ncommand = 'x'", "1: each benchmark is a table of its own: write [[benchmark]], in double brackets"),
        ("benchmark = ['x']", "1: each benchmark is a table of its own: write [[benchmark]], in double brackets"),
        ("a = 1\n[tool.cg-bench]", ("2: the tables of cg-bench.toml have no prefix: write [[benchmark]], and defaults above it "
         "without any table")),
        ("[tools.cg-bench]", ("1: the tables of cg-bench.toml have no prefix: write [[benchmark]], and defaults above it "
         "without any table")),
        ("[[cg-bench.benchmark]]", ("1: the tables of cg-bench.toml have no prefix: write [[benchmark]], and defaults above it "
         "without any table")),
    ],
)  # fmt: skip
def test_tables_in_a_wrong_place_are_reported(text: str, sentence: str) -> None:
    assert told(text) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (COMMAND, "1: in pyproject.toml a benchmark begins with [[tool.cg-bench.benchmark]]"),
        (f"[tool.cg-bench]\n{COMMAND}", "2: in pyproject.toml a benchmark begins with [[tool.cg-bench.benchmark]]"),
        ("[project]\n[tool.cg_bench]", "2: unknown table [tool.cg_bench]; did you mean [tool.cg-bench]?"),
        ("[tools.ruff]\n[tools.cg-bench]", "2: unknown table [tools.cg-bench]; did you mean [tool.cg-bench]?"),
        ("[tool.cg-bench.defaults]\nrepeat = 2", "1: unknown table 'defaults'; the defaults are directly below [tool.cg-bench]"),
        ("[[tool.cg-bench.benchmarks]]", "1: unknown table [[tool.cg-bench.benchmarks]]; did you mean [[tool.cg-bench.benchmark]]?"),
        ("[cgbench]", "1: in pyproject.toml our table is called [tool.cg-bench], not [cgbench]"),
        ("[[tool.cg-bench]]", "1: write [tool.cg-bench] in single brackets: there is one such table"),
        ("[tool.cg-bench.benchmark]\nid = 'a'", ("1: each benchmark is a table of its own: write [[tool.cg-bench.benchmark]], "
         "in double brackets")),
        ("[tool.cg-bench]\nid = 'a'", ("2: 'id' belongs to a benchmark, not to the defaults: write it below "
         "[[tool.cg-bench.benchmark]]")),
        ("[[tool.cg-bench.benchmark]]\nid = 'a'\njobs = 2", ("3: 'jobs' belongs to the defaults, not to a benchmark: write it above "
         "the first [[tool.cg-bench.benchmark]]")),
    ],
)  # fmt: skip
def test_tables_of_pyproject_in_a_wrong_place_are_reported(text: str, sentence: str) -> None:
    assert told(text, "pyproject.toml") == sentence


@pytest.mark.parametrize(
    ("text", "line", "advice"),
    [
        ("\ncommand = python x.py", 2, QUOTES),
        ("threshold = 5%", 1, QUOTES),
        ('id = "a\nb = 1', 1, "a text must end in the line it begins in, in a quote"),
        ("repeat = 1\nrepeat = 2", 2, "the same key or table is written twice"),
        ("[benchmark]\n[benchmark]", 2, "each benchmark begins with double brackets: [[benchmark]]"),
        ("x = {\n n = [1],\n}", 1, "an inline table is in one line; or write [benchmark.parameters]"),
        ("x = [1,\n2\n\n", 2, "Unclosed array"),
        ("repeat 3", 1, "Expected '=' after a key in a key/value pair"),
        ("x = 1\n// comment", 2, "Invalid statement"),
    ],
)
def test_what_is_not_toml_is_reported_with_its_line(text: str, line: int, advice: str) -> None:
    sentence = told(text)
    assert sentence.startswith(f"{line}: not valid TOML: ")
    assert sentence.endswith(advice)


def test_what_is_not_toml_in_pyproject_is_reported_with_the_prefix() -> None:
    sentence = told("[tool.cg-bench.benchmark]\n[tool.cg-bench.benchmark]", "pyproject.toml")
    assert sentence.endswith(" | each benchmark begins with double brackets: [[tool.cg-bench.benchmark]]")
    sentence = told("[tool.cg-bench]\nx = {\n}", "pyproject.toml")
    assert sentence.endswith(" | an inline table is in one line; or write [tool.cg-bench.benchmark.parameters]")


def test_text_that_is_not_utf_8_is_reported_with_its_line() -> None:
    Path("cg-bench.toml").write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(FileFormatError, match=r"^cg-bench\.toml:2: not UTF-8 text$"):
        load(Path.cwd() / "cg-bench.toml")


def test_a_file_that_cannot_be_read_is_reported() -> None:
    with pytest.raises(UsageError, match=r"cannot read gone\.toml: No such file or directory"):
        load(Path.cwd() / "gone.toml")
