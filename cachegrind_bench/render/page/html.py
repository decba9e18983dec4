"""Makes pages of one file that load nothing: templates that escape everything, our styles and scripts with their hashes.

Knows jinja2 and what HTML takes for its own; must not know what a page is about.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from cachegrind_bench.model.text import plain

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_SHARED = "cachegrind_bench.render.page"
# What HTML or a script would take for its own, and halves of pairs, which cannot be written; others are shorter as they are.
_MEANT = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def template(package: str) -> Template:
    """Return a package's `templates/page.html.j2`, which can include those of all pages."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates"), PackageLoader(_SHARED, "templates")]),
        autoescape=True,
        finalize=_visible,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template("page.html.j2")


def looks(package: str) -> dict[str, object]:
    """Return style and script of a page, with the hashes that let a browser run them and no other."""
    style = "\n".join((_own(_SHARED, "base.css"), _own(package, "page.css")))
    script = "\n".join((_own(_SHARED, "theme.js"), _own(package, "page.js")))
    return {
        "style": ours(style),
        "script": ours(script),
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }


def block(document: object) -> str:
    """Return JSON for a page's script. No character of it means anything to HTML."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return _MEANT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def ours(text: str) -> Markup:
    """Return text as it shall stand in the page: it is ours, and free of what would end its element."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


def _visible(value: object) -> object:
    """Show what hostile text would hide; what is markup already is ours."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _own(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
