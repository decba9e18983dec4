"""The line of every key of a TOML text."""

from __future__ import annotations

from cachegrind_bench.config.toml_lines import places

TEXT = r'''# a comment with [brackets] and key = 1
a = 1
  b.c = 'x' # d = 2
"quo ted"."#" = """
  [not.a.table]
  e = 1 \"""
""""
list = [
  1, # one
  [2, '],'],

  { f = 1, g = "}" },
]
[t . 'u']
h = { i = { j = 2 }, k = [ 3,
  4 ] }
[[arr]]
id = 'one'
[arr.sub]
l = 1979-05-27T07:32:00Z
[[arr]]
id = """two
[[arr]]"""
[[arr.deep]]
m = 1
'''


def test_tables_keys_and_elements_have_the_line_they_begin_in() -> None:
    assert places(TEXT) == {
        ("a",): 2,
        ("b",): 3,
        ("b", "c"): 3,
        ("quo ted",): 4,
        ("quo ted", "#"): 4,
        ("list",): 8,
        ("list", 0): 9,
        ("list", 1): 10,
        ("list", 1, 0): 10,
        ("list", 1, 1): 10,
        ("list", 2): 12,
        ("list", 2, "f"): 12,
        ("list", 2, "g"): 12,
        ("t",): 14,
        ("t", "u"): 14,
        ("t", "u", "h"): 15,
        ("t", "u", "h", "i"): 15,
        ("t", "u", "h", "i", "j"): 15,
        ("t", "u", "h", "k"): 15,
        ("t", "u", "h", "k", 0): 15,
        ("t", "u", "h", "k", 1): 16,
        ("arr",): 17,
        ("arr", 0): 17,
        ("arr", 0, "id"): 18,
        ("arr", 0, "sub"): 19,
        ("arr", 0, "sub", "l"): 20,
        ("arr", 1): 21,
        ("arr", 1, "id"): 22,
        ("arr", 1, "deep"): 24,
        ("arr", 1, "deep", 0): 24,
        ("arr", 1, "deep", 0, "m"): 25,
    }


def test_windows_line_ends_count_once() -> None:
    assert places("a = 1\r\n\r\n[b]\r\nc = '''\r\n'''\r\nd = 2\r\n")["b", "d"] == 6


def test_texts_of_many_quotes_end_where_they_end() -> None:
    assert (
        places("a = \"\"\nb = ''\nc = \"\"\"\"\"\"\nd = ''''''\ne = '''''x'''''\nf = \"\"\"\\\"\"\"\"\ng = 1")["g",]
        == 7
    )
