"""Makes pages of one file that load nothing: templates that escape everything, our styles and scripts with their hashes.

Knows jinja2 and what HTML takes for its own; must not know what a page is about.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from cachegrind_bench.model.text import counted, grouped, plain

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_PAGES = files("cachegrind_bench.render").joinpath("pages")  # templates, styles and scripts, a folder for each page
# What HTML or a script would take for its own, and halves of pairs, which cannot be written; others are shorter as they are.
_MEANT = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def render(name: str, *, data: str, **values: object) -> str:
    """Return the page of this name. Its template has the `values`; its script reads `data`, which `block` made."""
    looks: dict[str, object] = {}
    for what, common, ending in (("style", "base.css", "css"), ("script", "theme.js", "js")):
        files_of = [_PAGES / common, _PAGES / name / f"page.{ending}"]
        text = "\n".join(file.read_text(encoding="utf-8").strip() for file in files_of)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        looks |= {what: _ours(text), f"{what}_hash": f"sha256-{digest}"}  # the hash lets a browser run it, and no other
    return _template(name).render(data=_ours(data), counted=counted, grouped=grouped, **values, **looks)


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("cachegrind_bench.render", "pages"),
        autoescape=True,
        finalize=_visible,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template(f"{name}/page.html.j2")


def block(document: object) -> str:
    """Return JSON for a page's script. No character of it means anything to HTML."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return _MEANT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _ours(text: str) -> Markup:
    """Return text that is not escaped: it is ours, and free of what would end its element."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


def _visible(value: object) -> object:
    """Show what hostile text would hide; what is markup already is ours."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
