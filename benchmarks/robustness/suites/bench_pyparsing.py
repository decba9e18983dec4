"""pyparsing: evaluate sums, and read a small configuration."""

import pyparsing

NUMBER = pyparsing.Word(pyparsing.nums)
SUM = pyparsing.infix_notation(
    NUMBER, [(pyparsing.one_of("* /"), 2, pyparsing.OpAssoc.LEFT), (pyparsing.one_of("+ -"), 2, pyparsing.OpAssoc.LEFT)]
)
NAME = pyparsing.Word(pyparsing.alphas, pyparsing.alphanums + "_")
ENTRY = pyparsing.Group(NAME + pyparsing.Suppress("=") + (NUMBER | pyparsing.QuotedString('"')))
ENTRIES = pyparsing.ZeroOrMore(ENTRY)


def test_sum(benchmark):
    assert benchmark(lambda: SUM.parse_string("1 + 2 * 3 - 4 / (5 + 6)", parse_all=True).as_list())


def test_entries(benchmark):
    text = 'one = 1\ntwo = "second"\nthree = 3\nfour = "a longer text"\n'
    assert len(benchmark(lambda: ENTRIES.parse_string(text, parse_all=True).as_list())) == 4
