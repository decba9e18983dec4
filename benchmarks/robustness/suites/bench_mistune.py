"""mistune: render a page of Markdown."""

import mistune

PAGE = """
# A title

Some *emphasis*, some **more**, `code`, and a [link](https://example.org/path "with a title").

* one
* two with `code`
  1. nested
  2. again

> a quotation
> of two lines

```python
print("hello")
```
"""


def test_html(benchmark):
    assert "<blockquote>" in benchmark(mistune.html, PAGE)
