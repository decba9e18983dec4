"""Gives types new versions such that no two look-ups of a benchmark share an entry of CPython's method cache.

The cache has 4,096 entries, indexed by the type's version and the address of the attribute's name. Two look-ups of one
entry evict each other in each call, which cost benchmarks up to 8 %. Versions count how many types came before, and
addresses depend on all that was allocated: one unused class or renamed variable in any module decides who collides.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import struct
import sys
from array import array
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from types import CodeType
from typing import Any, Final

from cachegrind_bench.pytest_plugin.cpython.bytecode import forget_specialised
from cachegrind_bench.pytest_plugin.cpython.verified import IS_VERIFIED
from cachegrind_bench.startup.exchange import LookUps
from cachegrind_bench.startup.os_functions import Real

# Objects/typeobject.c (MCACHE_SIZE_EXP, struct type_cache_entry: version, padding, name, value).
_ENTRIES: Final = 1 << 12
_ENTRY = struct.Struct("=IIQQ")
# `tp_version_tag` of PyTypeObject on 64-bit machines (Include/cpython/object.h).
_VERSION_OFFSET: Final = 384
# A class may have 1,000 versions since CPython 3.13. All immutable types share 131,071 since 3.12, of a counter of their own.
_MOST_VERSIONS, _MOST_IMMUTABLE_VERSIONS = 900, 30
_MOST_TESTS = 100_000  # of entries, to find a version for one type
_WIDTH, _ROOT_AND_LAST = 16, 2  # 4,000 versions take 5 million instructions; 6 with a half or twice of that
# What the next version is when types are remembered, and when look-ups are spread: in between, a test takes a few hundred.
_REMEMBERED_AT, _SPREAD_AT = 0, 512
_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE
# Of the words of an entry, and a version that no type will come to: one of 0 is that of types without any.
_WORDS, _NO_VERSION = 3, 0xFFFFFFFF
_LEAST_CALLS, _MOST_CALLS = 3, 6  # that are observed
_CALLS_TO_SPECIALISE = 20  # of a function whose code CPython then leaves as it is for some time
_MOST_STATE_BYTES = 4 << 20  # of the interpreter's state, in which the cache is
# How often to look for it: what is executed between a look-up and the reading may have taken its entry.
_TRIES = 5

# By their names: who looks at all of them copies a thousand pages in the process of each benchmark.
_known: dict[str, list[type]] = {}
# All types that there were, and where each has its version: these lie together, and can be read without copying the types' pages.
_types: list[type] = []
_versions: list[Any] = []
_modules: list[int] = []  # how many there were
# A type's name as it was defined: its metaclass may have another idea of it.
_name: Any = vars(type)["__qualname__"].__get__
if IS_VERIFIED:
    _modified: Any = ctypes.pythonapi.PyType_Modified
    _modified.argtypes, _modified.restype = [ctypes.py_object], None
    _look_up: Any = ctypes.pythonapi._PyType_Lookup  # noqa: SLF001
    _look_up.argtypes, _look_up.restype = [ctypes.py_object, ctypes.py_object], ctypes.c_void_p


def observe_look_ups(call: Callable[[], object], codes: set[CodeType]) -> LookUps:
    """Return which look-ups this call, which executes this code, makes in types that other processes have; an empty dict where that is not known.

    The call is made some times, and no more once it raises. Types that it makes itself are left out.

    Of two look-ups that share an entry of the cache, only the last one is seen in it. So calls are made until one shows nothing
    new, and types get their versions in another order for each: what is found hardly depends on where anything is in memory.
    """
    found: dict[str, set[str]] = {}
    own = Real.own_process()
    cache = _find_cache() if IS_VERIFIED else 0
    if not cache:
        return {}
    late = _modules != [len(sys.modules)]  # the garbage collector does not know types that others have made in C
    if late:
        prepare_to_observe()
    new = _new_types()
    versions = [*_versions, *map(_place_of_version, new)]
    seen: list[type] = []
    own_array: Any = ctypes.c_uint64 * (_WORDS * _ENTRIES)
    entries = memoryview(own_array.from_address(cache)).cast("B").cast("Q")
    left, nones = memoryview(array("Q", entries)), array("Q", [id(None)]) * _ENTRIES

    if sys.version_info < (3, 12):  # where None can be freed
        ctypes.c_ssize_t.from_address(id(None)).value += _ENTRIES * _MOST_CALLS
    for stride in range(1, _MOST_CALLS + 1):
        _modified(object)
        for kind in [kind for start in range(stride) for kind in seen[start::stride]]:
            _new_version(kind)
        forget_specialised(codes)
        entries[::_WORDS] = array("Q", [_NO_VERSION]) * _ENTRIES
        # Nothing of our own is to be looked up from here on, until all is taken.
        raised = _raises(call)
        _take(entries, left, nones)
        if Real.own_process() != own:  # it forked, and this is the copy
            Real.leave(0)
        places = {version.value: place for place, version in enumerate(versions)}
        places.pop(0, None)  # has none
        looked_up = zip(left[::_WORDS].tolist(), left[1::_WORDS].tolist(), strict=True)
        before = sum(map(len, found.values()))
        for place, name in [(places[version], name) for version, name in looked_up if version in places]:
            kind = _types[place] if place < len(_types) else new[place - len(_types)]
            found.setdefault(_name(kind), set()).add(ctypes.cast(name, ctypes.py_object).value)
            seen.append(kind)
        if raised or (stride >= _LEAST_CALLS and sum(map(len, found.values())) == before):
            break
        seen = sorted(_each_once(seen), key=_name)
    if late:  # and what the test lets go of is not to stay
        for kept in (_types, _versions, _modules):
            kept.clear()
    return {kind: sorted(names) for kind, names in sorted(found.items())}


def prepare_to_observe() -> None:
    """Do once what takes long, for the processes that observe to inherit it."""
    _types[:] = _all_types()
    _versions[:] = map(_place_of_version, _types)
    _modules[:] = [len(sys.modules)]
    _find_cache()
    some = array("Q", [0] * _WORDS)
    for _ in range(_CALLS_TO_SPECIALISE):  # to specialise code takes look-ups
        _take(memoryview(some), memoryview(some), some[:1])
    _modified(object)  # then a process writes to those types only that it looks up in


def spread_look_ups(look_ups: LookUps) -> None:
    """Give types versions that keep these look-ups apart; bases first, as a type gets its version after them.

    The next version is always the same afterwards, in the cache: a benchmark may make types in each call.
    """
    names = {name: {id(sys.intern(one)) for one in found} for name, found in look_ups.items()}
    types = _named(names, [*chain.from_iterable(_known.get(name, ()) for name in names), *_new_types()])
    if len({_name(kind) for kind in types}) < len(names):  # what a library defines in C is not seen there
        types = _named(names, _all_types())
    _modified(object)
    # Immutable types have little choice, so they come first; their bases are immutable, too. A module may be anything.
    types.sort(
        key=lambda kind: (
            *(not kind.__flags__ & _IMMUTABLE_TYPE, len(kind.__mro__), -len(names[_name(kind)])),
            *(str(kind.__module__), kind.__qualname__),
        )
    )
    taken: set[int] = set()
    for kind in types:
        version = _free_version(kind, names[_name(kind)], taken)
        taken |= {_entry(version, name) for name in names[_name(kind)]}
    _burn_to(_SPREAD_AT)


def remember_types() -> None:
    """Remember which types there are, which takes long; the garbage collector knows what comes later, if all else is frozen."""
    if not IS_VERIFIED:
        return
    _known.clear()
    for kind in _all_types():
        _known.setdefault(_name(kind), []).append(kind)
    _spares[:] = [_Spares()]
    _burn_to(_REMEMBERED_AT)


def _free_version(kind: type, names: set[int], taken: set[int]) -> int:
    """Give a type a version by which these look-ups share as few entries with those taken as possible, and return it."""
    counter_of_its_own = kind.__flags__ & _IMMUTABLE_TYPE and sys.version_info >= (3, 12)
    most = _MOST_IMMUTABLE_VERSIONS if counter_of_its_own else min(_ENTRIES, _MOST_TESTS // len(names))
    version = _new_version(kind)
    for _try in range(_TRIES):  # something else may get the version that was chosen
        skipped = _versions_until_free(version, names, taken, most)
        if not skipped:
            break
        if not counter_of_its_own:
            _burn(skipped - 1)
            skipped = 1
        for _version_of_its_own in range(skipped):
            _modified(kind)
            version = _new_version(kind)
    return version


def _versions_until_free(version: int, names: set[int], taken: set[int], most: int) -> int:
    """Return how many versions come before the first one by which these look-ups share no entry, or fewest, with those taken."""
    fewest, found = len(names) + 1, 0
    for skipped in range(most):
        shared = 0
        for name in names:
            shared += _entry(version + skipped, name) in taken
            if shared >= fewest:
                break
        else:
            fewest, found = shared, skipped
            if not fewest:
                break
    return found


def _raises(call: Callable[[], object]) -> bool:
    try:
        call()
    except BaseException:  # noqa: BLE001 - it is reported where it is measured
        return True
    return False


def _take(entries: memoryview, left: memoryview, nones: array[int]) -> None:
    """Take what is in the cache, and its references to names: some have no other one, and are freed when they are replaced."""
    left[:] = entries
    entries[1::_WORDS] = nones


def _named(names: Container[str], types: Iterable[type]) -> list[type]:
    return _each_once(kind for kind in types if _name(kind) in names)


def _each_once(types: Iterable[type]) -> list[type]:
    """Return these types without repetitions; a metaclass may forbid to hash or compare them."""
    return list({id(kind): kind for kind in types}.values())


def _new_types() -> list[type]:
    return [found for found in gc.get_objects() if issubclass(type(found), type)]


def _entry(version: int, name: int) -> int:
    return (version ^ name >> 3) % _ENTRIES


def _new_version(kind: type) -> int:
    _look_up(kind, "__doc__")
    return _version(kind)


def _version(kind: type) -> int:
    return ctypes.c_uint32.from_address(id(kind) + _VERSION_OFFSET).value


def _place_of_version(kind: type) -> Any:
    return ctypes.c_uint32.from_address(id(kind) + _VERSION_OFFSET)


def _all_types() -> Iterator[type[Any]]:
    seen = {id(object)}
    waiting: list[type[Any]] = [object]
    while waiting:
        kind = waiting.pop()
        yield kind
        new: list[type[Any]] = [child for child in type.__subclasses__(kind) if id(child) not in seen]
        seen.update(map(id, new))
        waiting += new


def _spare(*bases: type) -> type:
    return type("Spare", bases, {})


class _Spares:
    """Types that use up versions. They are made once: memory must not depend on how many versions are used up."""

    def __init__(self) -> None:
        self.root, self.alone = _spare(), _spare()
        # A type and its bases get versions at once: many at a time come cheaper.
        self.last = _spare(*[_spare(self.root) for _ in range(_WIDTH)])
        self.left = _MOST_VERSIONS


_spares: list[_Spares] = []


def _burn(count: int) -> None:
    """Use up this many versions."""
    many, few = divmod(count, _WIDTH + _ROOT_AND_LAST)
    for place in range(many + few):
        if not _spares or not _spares[0].left:
            _spares[:] = [_Spares()]
        spares = _spares[0]
        spares.left -= 1
        _new_version(spares.last if place < many else spares.alone)
        _modified(spares.root if place < many else spares.alone)


def _burn_to(start: int) -> None:
    """Let the next version be this one, modulo the size of the cache."""
    _burn((start - _new_version(_spare()) - 1) % _ENTRIES)


@functools.cache
def _find_cache() -> int:
    """Return where the method cache is, 0 if it is not found: it is a part of the interpreter's state."""
    return next(filter(None, (_cache_by_look_up() for _try in range(_TRIES))), 0)


def _cache_by_look_up() -> int:
    name = "cg_bench_looks_this_up"
    kind = _spare()
    _new_version(kind)  # CPython 3.13 puts the look-up that gives a type its version where it would be without one
    _look_up(kind, name)
    interpreter: Any = ctypes.pythonapi.PyInterpreterState_Get
    interpreter.restype = ctypes.c_size_t
    begin = int(interpreter())
    state = _memory(begin)
    at = state.find(_ENTRY.pack(_version(kind), 0, id(name), 0)[:16])
    return begin + at - _entry(_version(kind), id(name)) * _ENTRY.size if at >= 0 else 0


def _memory(begin: int) -> bytes:
    """Return what is there, up to where no memory is; through /proc, where the end is an error instead of a signal."""
    found = b""
    # One reading may end early on a busy machine.
    with open("/proc/self/mem", "rb", buffering=0) as memory, suppress(OSError):
        memory.seek(begin)
        while more := memory.read(_MOST_STATE_BYTES - len(found)):
            found += more
    return found
