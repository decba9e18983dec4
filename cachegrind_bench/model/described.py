"""What the fields of JSON documents mean, their units, and which are differences: for schemas, and the page that lists them."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from msgspec import Meta

UNIT, DIFFERENCE = "x-unit", "x-difference"  # keys in a schema that are ours


def doc(text: str) -> Meta:
    """Return what a field means."""
    return Meta(description=text)


Instructions = Annotated[int, Meta(extra_json_schema={UNIT: "instructions"})]
Events = Annotated[int, Meta(extra_json_schema={UNIT: "events"})]
Points = Annotated[int, Meta(extra_json_schema={UNIT: "score"})]
Milliseconds = Annotated[int, Meta(extra_json_schema={UNIT: "ms"})]
Ppm = Annotated[Fraction, Meta(extra_json_schema={UNIT: "ppm"})]
# Differences are candidate minus base, or latest minus earlier.
InstructionsMore = Annotated[int, Meta(extra_json_schema={UNIT: "instructions", DIFFERENCE: True})]
PointsMore = Annotated[int, Meta(extra_json_schema={UNIT: "score", DIFFERENCE: True})]
PpmMore = Annotated[Fraction, Meta(extra_json_schema={UNIT: "ppm", DIFFERENCE: True})]
