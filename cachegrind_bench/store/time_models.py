"""Models of `cg-bench calibrate`: JSON files under a name, in the folder `.cg-bench/models` of the checkout."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.metrics import WEIGHTS
from cachegrind_bench.model.parsing import parse, refuse
from cachegrind_bench.model.text import some
from cachegrind_bench.model.time_model import TimeModel
from cachegrind_bench.store.baselines import check_name, make_store, names_in
from cachegrind_bench.store.durable import check_writable, read_file, write_atomic

_LARGEST = 1_000_000
_SHOWN = 20
_HINT = "make it again: cg-bench calibrate NAME"


def prepare(store: Path, name: str) -> Path:
    """Return where a model of this name will be. UsageError, before any work, if it cannot be written."""
    path = _path(store, name)
    make_store(store, path.parent)
    check_writable(path)
    return path


def write(path: Path, model: TimeModel) -> None:
    """Write a model, in place of an older one; whole or not at all."""
    write_atomic(path, msgspec.json.format(msgspec.json.encode(model), indent=2) + b"\n")


def read(store: Path, name: str) -> TimeModel:
    """Return the model of this name. UsageError if it does not exist, or the file is not what it should be."""
    path = _path(store, name)
    try:
        data = read_file(path, _LARGEST)
    except FileNotFoundError:
        known = some(names_in(path.parent), _SHOWN) or "none; 'cg-bench calibrate NAME' makes one"
        raise UsageError(f"there is no model {name!r}", hint=f"models: {known}") from None
    found = parse(data, TimeModel, str(path), hint=_HINT)
    if found.weights.keys() != WEIGHTS.keys():
        refuse(str(path), "weights", f"must have {', '.join(WEIGHTS)}", hint=_HINT)
    return found


def _path(store: Path, name: str) -> Path:
    check_name(name, "a model")
    return store / "models" / f"{name}.json"
