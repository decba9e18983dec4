"""The geometry of charts: paths of steps in units of one commit by one pixel, ticks, places in percent of the width.

A drawing stretches to the width of the page while its text does not, so across everything is in percent, and paths lie in
pictures of their own that are stretched. Knows numbers; must not know benchmarks or HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

_SPARK_WIDTH = 60
# A chart spans no less than this share of its level: what changes by less looks as flat as it is.
_LEAST_SPAN = 50
_MOST_LEFT_OUT = 12  # pixels


class Scale(msgspec.Struct, frozen=True):
    """From values to pixels, downwards: `low` lies at `height`, `high` at 0."""

    low: int
    high: int
    height: int

    @classmethod
    def of(cls, values: Sequence[int], height: int) -> Scale:
        """Return a scale on which these values fill most of the height, unless they hardly differ."""
        low, high = min(values, default=0), max(values, default=0)
        lacking = max(max(high // _LEAST_SPAN, 4) - (high - low), 0)
        air = (high - low + lacking) // 12 + 1
        return cls(max(0, low - lacking // 2 - air), high + lacking // 2 + air, height)

    def place(self, value: int) -> int:
        """Return how far down a value lies, in whole pixels."""
        return round(self.height * (self.high - value) / (self.high - self.low))

    def ticks(self, most: int = 4) -> tuple[int, ...]:
        """Return round values within the scale, at most `most`, and at least one."""
        step = self.step(most)
        first = -(-self.low // step) * step
        return tuple(range(first, self.high + 1, step))

    def step(self, most: int = 4) -> int:
        """Return the distance of ticks: 1, 2 or 5 times a power of ten."""
        span = self.high - self.low
        power: int = 10 ** (len(str(max(1, span // most))) - 1)
        return next((factor * power for factor in (1, 2, 5) if span // (factor * power) < most), 10 * power)


def path(places: Sequence[tuple[int, int]], breaks: Iterable[int] = (), *, least: int = 1) -> str:
    """Return steps through (commit, pixel) pairs: each commit is one unit wide, and a value holds until the next.

    At the commits in `breaks` the line starts afresh. Steps of fewer than `least` pixels are not drawn; what is not drawn
    costs nothing, which keeps pages small.
    """
    fresh = set(breaks)
    text: list[str] = []
    across, down, drawn = 0, 0, 0  # `drawn` is how far the line has been drawn, `across` how far it should be
    for number, (commit, pixel) in enumerate(places):
        if number == 0 or commit in fresh:
            if number:
                text.append(f"h{across - drawn}")
            text.append(f"M{commit} {pixel}")
            drawn, down = commit, pixel
        elif abs(pixel - down) >= least:
            text.append(f"h{commit - drawn}v{pixel - down}")
            drawn, down = commit, pixel
        across = commit + 1
    if places:
        text.append(f"h{across - drawn}")
    return "".join(text)


def bounded(
    places: Sequence[tuple[int, int]], breaks: Iterable[int] = (), *, least: int = 1, longest: int, coarse: int = 1
) -> str:
    """Return the same path within about `longest` characters: of what jumps about, only the larger steps are drawn.

    The script draws all of them again; this keeps a page of many noisy benchmarks within its bounds.
    """
    breaks = tuple(breaks)
    found = path(places, breaks, least=least)
    while len(found) > longest + 16 * len(breaks) and least < _MOST_LEFT_OUT * coarse:
        least += 1 + least // 4
        found = path(places, breaks, least=least)
    return found


def spark(values: Sequence[tuple[int, int]], first: int, last: int, height: int) -> str:
    """Return a small picture's path of (commit, value) pairs; of commits that share a column, the last is drawn."""
    scale = Scale.of([value for _commit, value in values], height)
    width = max(1, last - first + 1)
    columns = {(commit - first) * _SPARK_WIDTH // width: scale.place(value) for commit, value in values}
    return path(sorted(columns.items()))


def percent(commit: int, first: int, number: int, *, digits: int = 3) -> str:
    """Return where the middle of a commit's column is, in percent of the width of `number` columns."""
    return f"{(100 * (commit - first) + 50) / max(1, number):.{digits}f}".rstrip("0").rstrip(".") + "%"
