"""What it costs to turn a page of Markdown into HTML."""

import markdown

_PAGE = "".join(
    f"# Part {number}\n\nSome *text* with `code`, a [link](http://example.org/{number}) and **more**.\n\n"
    f"- one\n- two\n    - three\n\n> A quotation\n> of {number} lines\n\n    indented = {number}\n\n"
    for number in range(8)
)


def test_plain(benchmark):
    assert "<h1>Part 7</h1>" in benchmark(markdown.markdown, _PAGE)


def test_tables(benchmark):
    rows = "a | b\n--|--\n" + "1 | *2*\n" * 40
    assert "<table>" in benchmark(markdown.markdown, rows, extensions=["tables"])
