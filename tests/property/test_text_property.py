"""What holds for every environment block, and for every text that is shown."""

from __future__ import annotations

import os
import re
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from cachegrind_bench.hermetic.environment import pad
from cachegrind_bench.model.text import plain
from cachegrind_bench.render.markdown import escape, fold

words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)
long_words = st.builds(lambda word, times: word * times, words, st.integers(1, 400))
names = st.text(st.sampled_from("ABCXYZ_09"), min_size=1, max_size=8)
variables = st.dictionaries(names, long_words, max_size=90)


def size(found: dict[str, str], argv: list[str], executable: str) -> int:
    texts = [f"{name}={value}" for name, value in found.items()]
    return sum(len(os.fsencode(text)) + 1 for text in [*texts, *argv, executable])


@given(variables, st.lists(long_words, min_size=1, max_size=5), words, st.integers(0, 200), st.integers(0, 4095))
def test_the_block_ends_at_the_same_place_of_a_page_whatever_is_in_it(
    found: dict[str, str], argv: list[str], executable: str, extra: int, shift: int
) -> None:
    padded = pad(found, argv, executable, extra=extra, shift=shift)
    total = size(padded, argv, executable) + extra
    assert total % 4096 == shift
    assert total >= max(16384, size(found, argv, executable) + extra)
    assert len(padded) % 64 == 0
    assert padded.items() >= found.items()


_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_PLACES = ("### ❌ {}", "- {}: x", "> ⚠️ {}", "**x** {}", "{}", "| a |\n| --- |\n| {} |")
signs = st.text(st.sampled_from("ab01 <>&@#|\\`*_~[](){}!^:/.$-+=w"), max_size=16)


@given(signs, st.sampled_from(_PLACES))
@example("--- ", "{}")
def test_text_in_markdown_renders_as_itself_wherever_it_is(text: str, place: str) -> None:
    escaped = escape(text)
    html = _MARKDOWN.render(place.format(escaped))
    shown = unescape(re.sub(r"<[^>]*>", "", html)).replace("\u200b", "").split()
    template = unescape(re.sub(r"<[^>]*>", "", _MARKDOWN.render(place.format("TEXT")))).split()
    assert "".join(shown) == "".join(template).replace("TEXT", "".join(text.split()))
    tags = re.findall(r"<(\w+)", html)
    assert not {"em", "s", "a", "img", "code", "pre", "ol", "hr", "input"} & set(tags)
    assert tags.count("ul") == place.startswith("- ")
    assert tags.count("strong") == place.startswith("**")


@given(st.text())
@example("://")
def test_no_text_makes_a_mention_a_tag_or_a_formula(text: str) -> None:
    escaped = escape(text)
    assert re.search(r"<[a-zA-Z/!?]|@\w|#\d|(?<!\\)\$|(?<!\\)://|www\.", escaped) is None


# In Markdown, a backslash before the sign is enough for GitLab; in HTML, and where no sign begins the reference, it takes a zero-width space.
@pytest.mark.parametrize("text", ["GL-1", "&1", "%1", '%"v1"', "!1", "$1", "~bug", "^alert#1", "[issue:1]", "(gl-7)"])
def test_no_text_is_a_reference_on_gitlab(text: str) -> None:
    reference = r"""(?<!\\)(?:[!$~%](?=["\w])|&(?:amp;)?(?=[0-9]))|\#(?=[0-9])|\b(?:GH|GL)-[0-9]|\[[a-z_]+\\?:"""
    assert re.search(reference, text, re.IGNORECASE)
    assert re.search(reference, escape(text), re.IGNORECASE) is None
    title = fold(text, "").partition("<summary>")[2].partition("</summary>")[0]
    assert re.search(reference, title, re.IGNORECASE) is None
    assert unescape(title).replace("\u200b", "") == text


@pytest.mark.parametrize(
    "text",
    [
        "score +3.42 % (threshold 0.5 %)",
        "2026-01-31T12:00:00Z",
        "sort[n=10,f=a_b]",
        "vec::Vec::new",
        "-3 %",
        "a < b & c",
    ],
)
def test_usual_text_needs_no_escapes_which_mail_and_chat_would_show(text: str) -> None:
    assert escape(text) == text


@pytest.mark.parametrize("spaces", [1, 3, 4, 9])
def test_spaces_at_the_beginning_are_never_code(spaces: int) -> None:
    assert "<code>" not in _MARKDOWN.render(f"- {escape(' ' * spaces + 'x')}: y\n")


@given(st.text())
def test_nothing_shown_controls_a_terminal_and_all_of_it_can_be_encoded(text: str) -> None:
    shown = plain(text)
    assert not [letter for letter in shown if ord(letter) < 32 or 127 <= ord(letter) < 160]
    shown.encode()
    assert plain(shown) == shown
