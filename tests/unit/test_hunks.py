"""Which hunks of a change explain a difference: git's diff, where functions end, and what is not said."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.compare.call_split import CallCause, CallSplit, Kind, Label
from cachegrind_bench.compare.explain import Details, FunctionDelta
from cachegrind_bench.compare.hunks import Blamed, HunkSplit, Side, hunk_split
from cachegrind_bench.model.call_graph import Calls
from cachegrind_bench.model.metrics import ZERO
from cachegrind_bench.model.symbols import UNKNOWN, Symbol
from cachegrind_bench.render.comparison.hunks import hunk_remarks
from cachegrind_bench.vcs.diff import Hunk, hunks, text_at
from cachegrind_bench.vcs.git import Git

if TYPE_CHECKING:
    from pathlib import Path

C = """#define ROUNDS 4
static int twice(int a) { return a * 2; }

int count(int n) {  /* { */
    char brace = '{';
    for (int i = 0; i < ROUNDS; i++)
        n += twice(i);
    return n;
}

int never(int n) {
    return n;
}
"""
CXX = """namespace words {
struct Shape { int size; };
template <typename T>
class Counter {
    static constexpr int limit = 4;
    T count(int n) const
    {
        for (int i = 0; i < n; i++) { n += limit; }
        return n;
    }
};
int other() { return 1; }
}
"""
RUST = """const LIMIT: usize = 3;
impl<'a> Words<'a> {
    #[inline(never)]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| { word.len() }).sum()
    }

    fn other(&self) {}
}
fn main() {}
"""
PYTHON = """import sys

LIMIT = 3


@sys.intern
def count(words,
          limit=LIMIT):
    def inside(word):
        return word

    return [inside(word) for word in words]


def never():
    return 1
"""


def split(text: str, file: str, line: int, *changed: tuple[int, int], executed: tuple[int, ...] = ()) -> HunkSplit:
    """Split a change of these lines by one function that begins at this line."""
    found = [Hunk(file, *span) for span in changed]
    lines = {f"/root/{file}": executed} if executed else {}
    base = Side([hunk._replace(only_gone=True) for hunk in found], lambda _file: text, lines)
    candidate = Side(found, lambda _file: text, lines)
    return hunk_split(base, candidate, [Blamed(f"/root/{file}", line, "count", 1000, {})], 1100, root="/root")


@pytest.mark.parametrize(
    ("text", "file", "line", "inside", "outside"),
    [
        (C, "src/words.c", 6, [(4, 4), (6, 7), (9, 9)], [(1, 1), (2, 2), (12, 12)]),
        (CXX, "words.cc", 7, [(6, 6), (7, 7), (10, 10)], [(1, 1), (3, 4), (5, 5), (11, 11), (12, 13)]),
        (RUST, "words.rs", 5, [(4, 4), (6, 6)], [(1, 1), (3, 3), (8, 8), (10, 10)]),
        (PYTHON, "words.py", 6, [(6, 6), (8, 8), (10, 10), (12, 12)], [(3, 3), (3, 5), (16, 16)]),
    ],
)
def test_a_hunk_is_of_the_function_that_it_is_in(
    text: str, file: str, line: int, inside: list[tuple[int, int]], outside: list[tuple[int, int]]
) -> None:
    for span in inside:
        found = split(text, file, line, span)
        assert [row.hunks for row in found.touched] == [(Hunk(file, *span),)]
        assert (found.ir, found.others) == (1000, ())
    for span in outside:
        found = split(text, file, line, span)
        assert (found.touched, found.others, found.idle) == ((), (Hunk(file, *span),), False)


@pytest.mark.parametrize(("own", "shown"), [(3, [990, 2]), (600, [600, 2])])
def test_a_caller_that_passes_on_what_makes_another_dear_comes_before_what_it_costs_itself(
    own: int, shown: list[int]
) -> None:
    hunks = [Hunk("words.py", 10, 10), Hunk("words.py", 16, 16)]
    base = Side([hunk._replace(only_gone=True) for hunk in hunks], lambda _file: PYTHON, {})
    candidate = Side(hunks, lambda _file: PYTHON, {})
    blamed = [Blamed("/root/words.py", 6, "count", own, {}), Blamed("/root/words.py", 15, "never", 2, {})]
    way = [Blamed("/root/words.py", 6, "count", 990, {})]
    found = hunk_split(base, candidate, blamed, 1000, way=way, root="/root")
    assert [row.function.ir for row in found.shown] == shown
    assert found.chief == hunks[0]


@pytest.mark.parametrize(
    "text",
    [
        "int count(int);\nint other(void) {\n}\n",
        "int count(int n) {\n#if A\n  if (n) {\n#else\n  {\n#endif\n  }\n}\n",
        "int count(int n) {\n",
        "int count(int n) {\n}\n}\n",
        "}\n",
    ],
)
def test_where_the_end_of_a_function_is_in_doubt_nothing_is_blamed(text: str) -> None:
    assert split(text, "words.c", 1, (1, 2)).touched == ()


@pytest.mark.parametrize("head", ["template <> ", "template <> struct ", "template <> inline ", "template <> pub("])
@pytest.mark.parametrize("end", ["void f() ", "struct words f() "])
def test_time_does_not_double_with_each_template_before_a_function(head: str, end: str) -> None:
    text = f"{head * 60}{end}{{}}\n{C}"
    assert [row.hunks for row in split(text, "words.cc", 7, (5, 5)).touched] == [(Hunk("words.cc", 5, 5),)]


@pytest.mark.parametrize("head", ["template <class T> ", "template <> template <class T, class = A<T> > inline "])
def test_functions_are_found_in_a_class_that_is_a_template(head: str) -> None:
    for kind in ("class", "struct"):
        text = f"{head}{kind} Words : Base<T> {{\n  int size() {{\n    return 1;\n  }}\n  int never() {{ return 2; }}\n}};\n"
        assert [split(text, "words.cc", 2, (line, line)).ir for line in (3, 5)] == [1000, 0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int f(int n) {\n" + "    n += 1;\n" * 50 + "}\n", ""),
        ("namespace words {\n" * 5, "int f() {}\n}" * 5),
    ],
    ids=["functions", "namespaces"],
)
def test_functions_of_huge_files_are_found_in_linear_time(before: str, after: str) -> None:
    text = f"{C}{before * 10_000}{after * 10_000}"  # took minutes
    assert split(text, "words.cc", 6, (4, 4)).ir == 1000


@pytest.mark.parametrize(
    "text", ["/* " * 500_000, '"' + '\\"' * 500_000, '"' + '\\"' * 500_000 + "\\", 'auto s = R"(")";']
)
def test_where_a_comment_or_string_has_no_end_nothing_is_known_and_that_is_found_in_linear_time(text: str) -> None:
    assert split(C, "words.cc", 6, (4, 4)).ir == 1000
    assert split(C + text, "words.cc", 6, (4, 4)).ir == 0  # took hours


def test_only_bodies_of_functions_that_were_not_executed_are_certainly_idle() -> None:
    assert split(PYTHON, "words.py", 6, (16, 16), executed=(1, 6, 9)).idle
    assert not split(PYTHON, "words.py", 6, (15, 16), executed=(1, 6, 9)).idle  # defaults are computed
    assert not split(PYTHON, "words.py", 6, (16, 16), executed=(1, 6, 9, 15)).idle
    assert not split(PYTHON, "words.py", 0, (10, 10), executed=(1, 9)).idle  # the function around it, or one inside
    assert not split(PYTHON, "words.py", 6, (16, 16)).idle  # nothing is known
    assert split(C, "words.c", 4, (12, 12), executed=(4,)).idle
    assert not split(C, "words.c", 4, (11, 11), executed=(4,)).idle  # defaults of arguments are computed elsewhere
    assert not split(C, "words.c", 4, (12, 12), executed=(4, 12)).idle
    assert not split(C, "words.c", 4, (1, 1), executed=(4,)).idle
    assert not split(C.replace("int never", "constexpr int never"), "words.c", 4, (12, 12), executed=(4,)).idle
    assert not split("def (", "words.py", 6, (1, 1), executed=(4,)).idle


def test_a_changed_file_of_which_an_installed_copy_was_executed_is_not_idle() -> None:
    def idle(executed: str) -> bool:
        hunk = Hunk("src/pkg/words.py", 16, 16)
        base, candidate = (
            Side([each], lambda _file: PYTHON, {executed: (1,)}) for each in (hunk._replace(only_gone=True), hunk)
        )
        return hunk_split(base, candidate, [], 1000, root="/root").idle

    assert not idle("/venv/lib/python3.13/site-packages/pkg/words.py")
    assert idle("/venv/lib/python3.13/site-packages/other/words.py")


def test_the_code_of_a_module_is_what_is_between_its_functions() -> None:
    def through(first: int, last: int) -> bool:
        hunk = Hunk("words.py", first, last)
        base, candidate = Side([], lambda _file: None, {}), Side([hunk], lambda _file: PYTHON, {})
        module = Blamed("/root/words.py", 1, "<module>", 900, {})
        found = hunk_split(base, candidate, [], 1000, way=[module], root="/root")
        return found.chief == hunk

    assert [through(*span) for span in ((1, 1), (3, 4), (17, 17))] == [True] * 3
    assert [through(*span) for span in ((6, 6), (8, 12), (15, 16))] == [False] * 3


def test_code_that_was_inlined_is_of_the_function_whose_lines_were_recorded_there() -> None:
    text, hunk, other = "a\nb\nc\n", Hunk("src/inline.h", 2, 3), Hunk("src/other.h", 2, 3)
    base, side = Side([], lambda _file: text, {}), Side([hunk, other], lambda _file: text, {})
    function = Blamed("/root/src/words.c", 9, "count", 1000, {"/root/src/words.c": {9}, "/root/src/inline.h": {3}})
    found = hunk_split(base, side, [function], 1100, root="/root")
    assert [(row.hunks, row.texts) for row in found.touched] == [((hunk,), ("b\nc",))]
    assert found.others == (other,)


def test_a_function_of_another_file_that_was_inlined_is_whole() -> None:
    inside, outside = Hunk("src/words.rs", 4, 4), Hunk("src/words.rs", 8, 8)
    base, side = Side([], lambda _file: RUST, {}), Side([inside, outside], lambda _file: RUST, {})
    function = Blamed("criterion/src/bencher.rs", 80, "iter", 1000, {"/root/src/words.rs": {5}})
    found = hunk_split(base, side, [function], 1100, root="/root")
    assert ([row.hunks for row in found.touched], found.others) == ([(inside,)], (outside,))


@pytest.mark.parametrize(
    ("file", "old", "new", "equal"),
    [
        ("a.c", "a(); /* b\n*/ c", "a(); c", True),
        ("a.c", "if (a)\n  b();", "if (a) b(); // b", True),
        ("a.c", 'a("b c")', 'a("bc")', False),
        ("a.c", 'a("// b")', 'a("// c")', False),
        ("a.py", 'def a():\n    """B."""\n    return 1  # c', 'def a():\n    """C.\n\n    D."""\n\n    return 1', True),
        ("a.py", "if a:\n    b()\nc()", "if a:\n    b()\n    c()", False),
        ("a.py", "a = '# b'", "a = '# c'", False),
        ("a.py", "def a(): 'é'; return 1", "def a(): 'é'; return 2", False),
        ("a.py", "'b'", "'c'", False),
        ("a.py", "a(  # b", "a(  # c", False),
        ("a.toml", "a = 1 # b", "a = 1 # c", False),
        ("new.c", None, "// a\n", True),
    ],
)
def test_comments_and_layout_are_no_code(file: str, old: str | None, new: str, equal: bool) -> None:
    def side(text: str | None) -> Side:
        return Side([Hunk(file, 1, 1 if text is None else text.count("\n") + 1, text is None)], lambda _file: text, {})

    function = Blamed(f"/root/{file}", 0, "a", 1, {f"/root/{file}": {1}})
    found = hunk_split(side(old), side(new), [function], 1, root="/root")
    assert (found.touched == (), found.idle) == (equal, equal)


def called(label: Label, base: int, candidate: int) -> CallSplit:
    before, after = Calls(base, 10 * base), Calls(candidate, 10 * candidate)
    kind, caller = Kind.CALLED, None
    cause = CallCause(
        kind=kind, culprit=label, function=label, caller=caller, members=2, ir=1, base=before, candidate=after
    )
    return CallSplit(rows=(), shares=(), rest=0, top=0, total=1, cause=cause, way=())


def test_what_is_said_is_no_more_than_what_is_certain() -> None:
    def said(found: HunkSplit, blamed: FunctionDelta | None = None, calls: tuple[int, int] | None = None) -> list[str]:
        label = Label(Symbol("count"), "words.c", 4, "")
        empty: dict[str, Any] = {
            "calls": None if calls is None else called(label, *calls),
            "rows": (),
            "rest": (),
            "blamed": blamed,
            "blamed_share": 0,
            "moved": (),
            "moved_count": 0,
        }
        details = Details(total=ZERO, lines=None, lines_missing=False, by_file=False, hunks=found, **empty)
        return hunk_remarks(details)

    (text,) = said(split(C, "words.c", 4, (6, 7), (9, 9), (12, 12)))
    assert text == (
        "+1,000 instructions, 90.9 % of the difference, are of functions that the change touches: count at words.c:6-7, words.c:9"
    )
    (text,) = said(split(C, "words.c", 4, (1, 1)))
    assert "such as constants, arguments, and code that was inlined" in text
    for calls, side in (((0, 9), "base"), ((9, 0), "candidate")):
        (text,) = said(split(C, "words.c", 4, (1, 1)), calls=calls)
        assert f"was changed: count may be inlined in the {side}, which has no calls of it; what other" in text
    assert "inlined in" not in said(split(C, "words.c", 4, (1, 1)), calls=(1, 9))[0]
    nowhere = FunctionDelta(name="count", file=UNKNOWN, base=ZERO, candidate=ZERO)
    assert said(split(C, "words.c", 4, (1, 1)), nowhere) == []
    (text,) = said(split(PYTHON, "words.py", 6, (16, 16), executed=(1, 6, 9)))
    assert text.startswith("nothing that changed between the commits was executed")


def test_the_hunks_of_a_commit_are_those_of_git(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(["git", *words], cwd=tmp_path, env={**os.environ, **who}, capture_output=True, check=True)
        return done.stdout.decode().strip()

    git("init", "-q")
    (tmp_path / "a file.c").write_text("1\n2\n3\n4\n", encoding="utf-8")
    (tmp_path / "gone.c").write_text("++ b/x\n@@ -1 +1 @@\n", encoding="utf-8")
    (tmp_path / "data").write_bytes(b"\0\1")
    git("add", ".")
    git("commit", "-qm", "one")
    (tmp_path / "a file.c").write_text("1\n++ b/x\n@@ -9 +9 @@\n3\n", encoding="utf-8")
    (tmp_path / "gone.c").unlink()
    (tmp_path / "data").write_bytes(b"\0\2")
    (tmp_path / "new é.c").write_text("1\n2", encoding="utf-8")
    git("add", ".")
    git("commit", "-qm", "two")
    here = Git(tmp_path, dict(os.environ))
    old, new = git("rev-parse", "HEAD~"), git("rev-parse", "HEAD")
    assert hunks(here, old, new) == (
        Hunk("a file.c", 2, 3),
        Hunk("a file.c", 4, 4, True),
        Hunk("data", 1, 1),
        Hunk("gone.c", 1, 1, True),
        Hunk("new é.c", 1, 2),
    )
    assert text_at(here, new, "new é.c") == "1\n2"
    assert text_at(here, new, "gone.c") is None
    assert hunks(here, old, "0" * 40) is None
    assert hunks(here, old, "--output=x") is None
