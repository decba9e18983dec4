"""lark: read JSON by a grammar (LALR), as the example of its documentation does."""

import lark

GRAMMAR = r"""
?value: object | array | string | SIGNED_NUMBER -> number | "true" -> true | "false" -> false | "null" -> null
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: string ":" value
string: ESCAPED_STRING
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""
TEXT = '{"names": ["one", "two", {"three": [3, 3.5, -1e9]}], "ok": true, "nothing": null, "more": [[], {}, [1, 2, 3]]}'


def test_json(benchmark):
    parser = lark.Lark(GRAMMAR, start="value", parser="lalr")
    assert benchmark(lambda: parser.parse(TEXT).pretty())
