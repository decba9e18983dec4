"""What is done between two calls of what is measured, so that each finds what the one before found."""

from __future__ import annotations

import gc
import pickle
import sys

from cachegrind_bench.startup.unlisted import give_back

# Global generators of random numbers, and what returns their state.
_GENERATORS = {"random": "getstate", "numpy.random": "get_state"}


def seed_all() -> None:
    """Seed the global generators of random numbers."""
    for name in _GENERATORS:
        module = sys.modules.get(name)
        if module is not None:
            module.seed(0)


class Between:
    """What has to be done before a call so that it finds all as the one before did: no more than warm-ups have shown.

    What runs between calls takes lines of the caches from them; so for the usual function that is nothing.
    """

    def __init__(self) -> None:
        """Begin, right before the first call."""
        give_back()
        self._drawn: dict[str, bool] = {}
        self._states: dict[str, bytes] = {}
        self._garbage = self._watched = False

    def watch(self) -> None:
        """Prepare a warm-up, and look what the one before has left behind: garbage, numbers drawn."""
        self._garbage = gc.collect() > 0 and self._watched
        self._watched = True
        for name, state in _GENERATORS.items():
            module = sys.modules.get(name)
            if module is not None:
                self._drawn[name] = pickle.dumps(getattr(module, state)()) != self._states.get(name)
                module.seed(0)
                self._states[name] = pickle.dumps(getattr(module, state)())

    def prepare(self) -> None:
        """Prepare a call that counts."""
        if self._garbage:
            gc.collect()
        for name, drawn in self._drawn.items():
            if drawn:
                sys.modules[name].seed(0)
