"""Parameters of a benchmark: their values, the combinations that are wanted, and where `{name}` stands for a value."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from cachegrind_bench.config.suggestions import as_list, as_words, nearest, quoted, text_of, word_for

if TYPE_CHECKING:
    from cachegrind_bench.config.source import Source
    from cachegrind_bench.config.toml_lines import Steps

_NAME = r"[A-Za-z_][A-Za-z0-9_-]*"
_PLACEHOLDER = re.compile(r"(?<!\$)\{(" + _NAME + r")\}")  # ${name} is a variable of the shell
# `%{http_code}`, `HEAD@{u}` and `{{other}}` are of other languages.
_MEANT = re.compile(r"(?<![$%@{])\{(" + _NAME + r")\}(?!\})")
_RANGE = re.compile(r"\s*range\s*\(.*|\s*-?[0-9]+\s*(?:\.{2,}=?|:|-|to)\s*[0-9]+\b.*")
_MOST = 10_000  # benchmarks: a slip should not fill the memory


def defined(table: Mapping[str, object], at: Source) -> dict[str, tuple[str, ...]]:
    """Return the values of each parameter as texts."""
    return {name: _values(name, found, at.below(name)) for name, found in table.items()}


def filled(text: str, chosen: Mapping[str, str]) -> str:
    """Return a text with the values in place of the names; other words in braces stay as they are."""
    return _PLACEHOLDER.sub(lambda match: chosen.get(match[1], match[0]), text)


def combinations(
    parameters: Mapping[str, Sequence[str]], exclude: Sequence[Mapping[str, object]], at: Source
) -> list[dict[str, str]]:
    """Return every wanted combination, the last parameter varying fastest; one empty one if there are no parameters."""
    number = 1
    for found in parameters.values():
        number *= len(found)
    if number > _MOST:
        at.fail(f"these parameters make {number} benchmarks, more than {_MOST}", "parameters")
    unwanted = [_excluded(parameters, table, at.below("exclude", place)).items() for place, table in enumerate(exclude)]
    whole = [dict(zip(parameters, chosen, strict=True)) for chosen in itertools.product(*parameters.values())]
    wanted = [chosen for chosen in whole if not any(left_out <= chosen.items() for left_out in unwanted)]
    if not wanted:
        at.fail("exclude leaves no combination of the parameters", "exclude")
    return wanted


def check_id(parameters: Mapping[str, object], identity: str, at: Source) -> None:
    """Refuse names in braces in the id of a benchmark that has parameters."""
    found = _PLACEHOLDER.search(identity) if parameters else None
    if found is not None:
        plain = re.sub(r"(?<![-_./,= ])[-_./,= ]*+\[?" + _PLACEHOLDER.pattern + r"\]?", "", identity) or "parse"
        at.fail(
            f"{found[0]} in the id has no effect: the values of parameters are added to it automatically",
            "id",
            hint=f"write id = {quoted(plain)}",
        )


def check_use(
    parameters: Mapping[str, object], texts: Mapping[Steps, str], words: Mapping[Steps, str], at: Source
) -> None:
    """Refuse parameters that are used nowhere, and names in braces that look as if they were meant to be parameters.

    `texts` are all that values are put into, `words` those of them that are one argument each. In a benchmark without
    parameters, only an argument that is nothing but a name in braces is hardly anything else.
    """
    for place, text in texts.items():
        for name in _MEANT.findall(text):
            if name not in parameters and (parameters or (place in words and text == f"{{{name}}}")):
                _refuse(parameters, name, at.below(*place))
    used = {name for text in texts.values() for name in _PLACEHOLDER.findall(text)}
    unused = next((name for name in parameters if name not in used), None)
    if unused is not None:
        at.fail(
            f"the parameter {unused!r} is never used",
            "parameters",
            unused,
            hint=f'write {{{unused}}} where its value belongs, as in command = ["prog", "{{{unused}}}"]',
        )


def _refuse(parameters: Mapping[str, object], name: str, at: Source) -> NoReturn:
    meant = nearest(name, {known: known for known in parameters})
    known = ", ".join(f"{{{known}}}" for known in parameters)
    advice = f"known are {known}" if parameters else f"define it: parameters = {{ {name} = […] }}"
    at.fail(
        f"{{{name}}} is not a parameter of this benchmark; {f'did you mean {{{meant}}}?' if meant else advice}",
        hint=None if meant else f"a text with spaces, as in '{{ {name} }}', is not one",
    )


def _values(name: str, found: object, at: Source) -> tuple[str, ...]:
    if re.fullmatch(_NAME, name) is None:
        at.fail(f"{name!r} cannot name a parameter: letters, digits, _ and - can, beginning with a letter")
    if not isinstance(found, list):
        hint = _as_list(name, found)
        at.fail(f"the values of the parameter {name!r} are a list, not {word_for(found)}", hint=hint)
    items = cast("list[object]", found)
    if not items:
        at.fail(f"the parameter {name!r} has no values: its list is empty")
    texts = tuple(_value(name, item, at.below(place)) for place, item in enumerate(items))
    if len({*texts}) < len(texts):
        twice = next(text for place, text in enumerate(texts) if text in texts[:place])
        at.fail(f"the parameter {name!r} has the value {twice} twice")
    return texts


def _as_list(name: str, found: object) -> str:
    """Return how the values of a parameter should have been written."""
    if isinstance(found, str):
        if _RANGE.fullmatch(found):
            return f"there are no ranges: list the values, as in {name} = [1, 2, 3]"
        return f"write {name} = {as_list(as_words(found) or [found])}"
    text = text_of(found)
    shown = quoted(text) if isinstance(found, bool) else text
    return f"as in {name} = [1000, 10000]" if text is None else f"write {name} = [{shown}]"


def _value(name: str, item: object, at: Source) -> str:
    text = text_of(item)
    if text is None:
        at.fail(f"a value of the parameter {name!r} is a text or a number, not {word_for(item)}")
    if not text.isprintable():
        at.fail(f"a value of the parameter {name!r} is not printable: {text!r}")
    return text


def _excluded(parameters: Mapping[str, Sequence[str]], table: Mapping[str, Any], at: Source) -> dict[str, str]:
    if not table:
        at.fail("this part of exclude is empty, which would leave out everything")
    for name, item in table.items():
        if name not in parameters:
            meant = nearest(name, {known: known for known in parameters})
            advice = f"; did you mean {meant!r}?" if meant else ""
            at.fail(f"exclude names {name!r}, which is not a parameter of this benchmark{advice}", name)
        if text_of(item) not in parameters[name]:
            known = ", ".join(parameters[name])
            at.fail(f"exclude names a value that the parameter {name!r} does not have; it has {known}", name)
    return {name: text_of(item) or "" for name, item in table.items()}
