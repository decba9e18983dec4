"""What decides whether two results may be compared: the machine's share and the benchmark's share of the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.hermetic.machine import machine_fields, machine_info
from cachegrind_bench.model.result import Environment, comparability_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cachegrind_bench.hermetic.environment import Request
    from cachegrind_bench.hermetic.fingerprint import Fingerprint
    from cachegrind_bench.model.result import SealPart
    from cachegrind_bench.valgrind.options import Geometry, Tool
    from cachegrind_bench.valgrind.tool import Valgrind

# The parts of the seal that change what is counted; the others only make it noisy or quick.
_COUNTED_PARTS = ("environment", "randomness", "cpu", "clock")


def environment_of(
    valgrind: Valgrind, geometry: Geometry, caller: Mapping[str, str], passed: Mapping[str, str]
) -> Environment:
    """Return what the machine contributes; `passed` holds hashes of variables that were passed on by request."""
    fields = {
        **machine_fields(),
        "valgrind": valgrind.version,
        "guest_chase": "off" if valgrind.guest_chase_off else "on",
        "geometry": str(geometry),
    }
    info = {**machine_info(caller), **{f"env.{name}": value for name, value in passed.items()}}
    return Environment(key=comparability_key(fields), fields=fields, info=info)


def benchmark_key_fields(identity: Fingerprint, seal: Mapping[str, SealPart], tool: Tool) -> dict[str, str]:
    """Return the benchmark's own share of its key: what interprets it, and what was pinned."""
    states = {f"seal.{part}": seal[part].state.value for part in _COUNTED_PARTS}
    return {**identity.key_fields(), **states, "tool": tool.value}
