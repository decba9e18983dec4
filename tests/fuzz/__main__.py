"""Fuzzing for longer: `python -m tests.fuzz --cases 1000000`, over all formats by turns; what falls is kept in tests/data/fuzz.

Exit status 1 if anything fell. Prints the counts of each format.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.formats import CORPUS, FORMATS, try_one
from tests.fuzz.mutations import damaged

_ROUND = 500  # cases of one format before the next has its turn: Hypothesis remembers all cases of a test


def fuzz(name: str, number: int, cases: int, seen: Counter[str]) -> tuple[bytes, str] | None:
    """Try some cases of a format; return the smallest data that fell, and how."""
    last: list[bytes] = []

    @seed(number)
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        print_blob=False,
    )
    @given(damaged(FORMATS[name][1]))
    def each(data: bytes) -> None:
        last[:] = [data]
        seen[f"{name} accepted" if try_one(name, data) else f"{name} refused"] += 1

    try:
        each()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return last[0], "".join(traceback.format_exception(error)[-4:])
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000, help="cases of all formats together")
    parser.add_argument("--minutes", type=float, default=24 * 60, help="the most that it may take")
    parser.add_argument("--seed", type=int, default=None, help="of the first round [default: the time]")
    parser.add_argument("formats", nargs="*", help=f"some of {', '.join(FORMATS)} [default: all]")
    chosen = parser.parse_args()
    os.nice(10)
    names = chosen.formats or [*FORMATS]
    number = int(time.time()) if chosen.seed is None else chosen.seed
    print(f"seed {number}", flush=True)
    end = time.monotonic() + chosen.minutes * 60
    seen: Counter[str] = Counter()
    fell: Counter[str] = Counter()
    with suppress(KeyboardInterrupt):
        while seen.total() < chosen.cases and time.monotonic() < end and names:
            for name in [*names]:
                number += 1
                found = fuzz(name, number, _ROUND, seen)
                if found is not None:
                    data, how = found
                    fell[name] += 1
                    folder = CORPUS / name
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
                    print(f"{name}: fell (kept in {folder}):\n{how}", flush=True)
                    if fell[name] >= 5:
                        names.remove(name)
    for name in FORMATS:
        accepted, refused = seen[f"{name} accepted"], seen[f"{name} refused"]
        print(
            f"{name:16} {accepted + refused:9,} cases {accepted:9,} accepted {refused:9,} refused {fell[name]:3} fell"
        )
    print(f"{'all':16} {seen.total():9,} cases {sum(fell.values()):3} fell")
    return bool(fell)


if __name__ == "__main__":
    sys.exit(main())
