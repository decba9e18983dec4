"""tinycss2: read a style sheet, and write it."""

import tinycss2

SHEET = """
@media (min-width: 30em) { body > .page #top a:hover { color: #c0ffee; margin: 0 auto 1.5em; background: url(a.png) } }
h1, h2 { font: bold 1.2em/1.4 "Some Font", serif; width: calc(100% - 3px) } /* a comment */
"""


def read_and_write():
    return tinycss2.serialize(tinycss2.parse_stylesheet(SHEET))


def test_sheet(benchmark):
    assert "calc" in benchmark(read_and_write)
