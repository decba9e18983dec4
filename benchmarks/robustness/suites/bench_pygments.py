"""Pygments: a few lines of Python as HTML."""

import pygments
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

CODE = '''
@decorator
def fibonacci(n: int = 10) -> list[int]:
    """A docstring."""
    found = [0, 1]  # a comment
    while len(found) < n:
        found.append(found[-1] + found[-2])
    print(f"{n}: {found!r}")
    return found
'''


def test_html(benchmark):
    lexer, formatter = PythonLexer(), HtmlFormatter()
    assert "fibonacci" in benchmark(lambda: pygments.highlight(CODE, lexer, formatter))
