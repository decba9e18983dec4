"""Cost models: from nine counts to one score. A model's weights are its name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from cachegrind_bench.model.metrics import Counts

_NAME = re.compile(r"(?:(\d{1,6})?l1)\+(\d{1,6})ll\+(\d{1,6})ram")


class CostModel(msgspec.Struct, frozen=True):
    """Weights for L1, LL and RAM hits, or (`l1` None) plain instruction counts.

    `l1+5ll+30ram` is the formula of Itamar Turner-Trauring, "CI for performance: Reliable benchmarking in noisy
    environments" (https://pythonspeed.com/articles/consistent-benchmarking-in-ci/).
    """

    l1: int | None
    ll: int = 0
    ram: int = 0

    @property
    def name(self) -> str:
        """The canonical name; two scores compare only under the same one."""
        if self.l1 is None:
            return "ir"
        return f"{'' if self.l1 == 1 else self.l1}l1+{self.ll}ll+{self.ram}ram"

    def score(self, counts: Counts) -> int:
        """Return the score of these counts, an integer without unit."""
        if self.l1 is None:
            return counts.Ir
        return self.l1 * counts.l1_hits + self.ll * counts.ll_hits + self.ram * counts.ram_hits

    @classmethod
    def parse(cls, text: str) -> CostModel:
        """Read a name such as `l1+5ll+30ram`, `2l1+7ll+40ram` or `ir`; UsageError on anything else."""
        plain = text.strip().lower()
        if plain == "ir":
            return IR
        match = _NAME.fullmatch(plain)
        if match is None:
            raise UsageError(
                f"{text!r} is not a cost model",
                hint="write weights for the three kinds of hits, as in l1+5ll+30ram, or 'ir' for plain instruction counts",
            )
        l1, ll, ram = match.groups()
        return cls(1 if l1 is None else int(l1), int(ll), int(ram))


IR = CostModel(None)
DEFAULT = CostModel(1, 5, 30)
