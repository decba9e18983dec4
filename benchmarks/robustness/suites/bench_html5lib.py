"""html5lib: read a page that is not well formed, and write it."""

import html5lib

PAGE = """<!DOCTYPE html><title>A page</title><h1>Title</h1>
<p>Some <b>bold <i>both</b> italic</i> text &amp; an <a href="x?a=1&b=2">address</a>
<table><tr><td>1<td>2<tr><td>3</table><ul><li>one<li>two</ul>"""


def read_and_write():
    return html5lib.serialize(html5lib.parse(PAGE))


def test_page(benchmark):
    assert "address" in benchmark(read_and_write)
