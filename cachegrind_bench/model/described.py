"""What the fields of JSON documents mean, their units, and which are differences: for schemas, and the page that lists them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

UNIT, DIFFERENCE = "x-unit", "x-difference"  # keys in a schema that are ours


def doc(text: str) -> Meta:
    """Return what a field means."""
    return Meta(description=text)


def unit(name: str, *, difference: bool = False) -> Meta:
    """Return the unit of a number, and whether it is a difference: candidate minus base, or latest minus earlier."""
    keys: dict[str, Any] = {UNIT: name} | ({DIFFERENCE: True} if difference else {})
    return Meta(extra_json_schema=keys)


Instructions = Annotated[int, unit("instructions")]
Events = Annotated[int, unit("events")]
Points = Annotated[int, unit("score")]
Milliseconds = Annotated[int, unit("ms")]
Ppm = Annotated[int, unit("ppm")]
InstructionsMore = Annotated[int, unit("instructions", difference=True)]
PointsMore = Annotated[int, unit("score", difference=True)]
PpmMore = Annotated[int, unit("ppm", difference=True)]
