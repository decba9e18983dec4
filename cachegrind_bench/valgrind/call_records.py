"""The calls in a Callgrind out file, as its reader comes by them: who called whom, how often, and the inclusive Ir.

They are kept as lines and made numbers in the end: a file of CPython has as many as lines of self cost.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.call_graph import CallGraph, Calls, Code, every, graph_of
from cachegrind_bench.model.symbols import UNKNOWN
from cachegrind_bench.valgrind.out_format import DAMAGED_HINT, NOBODY, UNWANTED, decode, numbered

Named = tuple[bytes, str, str, str | None]  # a function: the value of its line, its name, object and file
_MANY = 100_000  # lines that are kept at a time
_HUNDREDTH = 100


class CallRecords:
    """State while reading. The numbers of functions hold for the whole file, the rest for one part."""

    def __init__(self, path: str, wanted: Callable[[str, str], bool]) -> None:
        """Keep calls of the functions that are `wanted`."""
        self._path = path
        self._wanted, self.is_whole = wanted, wanted is every
        self._codes: list[Code] = []
        self._places: dict[bytes, int] = {}  # of a function among the codes, by its number in the file
        # By functions, how many calls lead to each line. Most lead to where the function begins; a switch of Go's stack looks like
        # a call into the middle.
        self._lines: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self.begin_part()

    def begin_part(self) -> None:
        """Forget the calls of the part before."""
        self._own: defaultdict[int, int] = defaultdict(int)
        # Of each call: both functions, the two lines, and the number of the second one.
        self._callers: list[int] = []
        self._callees: list[int] = []
        self._texts: list[bytes] = []
        self._costs: list[bytes] = []
        self._numbers: list[int] = []
        self._at: list[tuple[int, int]] = []
        # Of the calls whose lines were read, by caller, callee and address: their number and cost.
        self._sums: dict[tuple[int, int, int], list[int]] = {}
        self._executed: defaultdict[tuple[int, int], int] = defaultdict(int)  # instructions, by function and address
        self.column = 0  # of the lines of cost that is Ir
        self._function: Named | None = None
        self._caller = NOBODY

    def enter(self, value: bytes, name: str, of_object: str, file: str | None) -> None:
        """Take in that what follows is of another function."""
        self._function, self._caller = (value, name, of_object, file), NOBODY

    @property
    def caller(self) -> int:
        """The place of the function in effect, which most functions need not have."""
        if self._caller == NOBODY and self._function is not None:
            self._caller = self._place(self._function)
        return self._caller

    def callee(self, value: bytes, name: str, of_object: str, file: str | None) -> int:
        """Return the place of a function that is called, UNWANTED if its calls are not to be kept."""
        return self._place((value, name, of_object, file)) if self._wanted(of_object, name) else UNWANTED

    def _place(self, function: Named) -> int:
        """Return the place of the function. If it has a number, that is its own, whatever other functions have this name."""
        value, name, of_object, file = function
        found = self._places.get(value)
        if found is None:
            found = len(self._codes)
            self._codes.append(Code(of_object, file or UNKNOWN, name))
            text = numbered(value)
            if text is not None:
                self._places[b"(%b)" % text[0]] = found
        return found

    def book(self, ir: int) -> None:
        """Add self cost to the function in effect."""
        if self.is_whole:
            self._own[self.caller] += ir

    def execute(self, address: int, times: int) -> None:
        """Add how often the function in effect executed the instruction at this address."""
        self._executed[self.caller, address] += times

    def call(self, callee: int, number: int, text: bytes, cost: bytes, place: tuple[int, int]) -> None:
        """Keep the two lines of a call; `number` is that of the second one.

        `place` is the address of the instruction, and the line where the function called begins; 0 if unknown.
        """
        self._callers.append(self.caller if self._caller == NOBODY else self._caller)
        self._callees.append(callee)
        self._texts.append(text)
        self._costs.append(cost)
        self._numbers.append(number)
        self._at.append(place)
        if len(self._numbers) == _MANY:
            self._add_up()

    def graph(self) -> CallGraph:
        """Return the calls of this part."""
        self._add_up()
        code = self._codes
        return graph_of(
            ((code[place], ir) for place, ir in self._own.items()),
            (((code[caller], code[callee]), found) for caller, callee, found in self._counted()),
            ((code[place], to.most_common(1)[0][0]) for place, to in self._lines.items() if place != NOBODY),
            (((code[place], address), ir) for place, address, ir in self._heavy()),
        )

    def _heavy(self) -> Iterator[tuple[int, int, int]]:
        total = sum(self._own.values())
        for (place, address), ir in self._executed.items():
            if ir * _HUNDREDTH >= total:
                yield place, address, ir

    def _counted(self) -> Iterator[tuple[int, int, Calls]]:
        """Yield the calls, as many as were made while costs were counted.

        Callgrind counts calls outside of regions and toggled functions as well (`push_call_stack` in its callstack.c), but no
        cost of them: the instruction that calls was counted as often as it called. Where it called several functions, in
        and outside, each gets its part. A call into a toggled function has costs, and its instruction none.
        """
        numbers = defaultdict[tuple[int, int], int](int)
        for (caller, _callee, address), found in self._sums.items():
            numbers[caller, address] += found[0]
        for (caller, callee, address), (number, ir) in self._sums.items():
            whole, executed = numbers[caller, address], self._executed.get((caller, address), 0)
            partly = address and whole > executed and (executed or not ir)
            yield caller, callee, Calls(number * executed // whole if partly else number, ir)

    def _add_up(self) -> None:
        if NOBODY in self._callers or NOBODY in self._callees:
            at = (self._callers if NOBODY in self._callers else self._callees).index(NOBODY)
            raise self._error("a call without `fn=` and `cfn=` lines before it", at)
        # A missing number is 0: Callgrind leaves zeros at the end of a line out.
        times = self._counts([text[len(b"calls=") :].partition(b" ")[0].rstrip() for text in self._texts])
        at = self.column
        costs = self._counts([(cost.split(None, at + 1)[at : at + 1] or [b"0"])[0] for cost in self._costs])
        calls = zip(self._callers, self._callees, self._at, times, costs, strict=True)
        for caller, callee, (address, line), number, ir in calls:
            found = self._sums.setdefault((caller, callee, address), [0, 0])
            found[0] += number
            found[1] += ir
            if line:
                self._lines[callee][line] += number
        for kept in (self._callers, self._callees, self._texts, self._costs, self._numbers, self._at):
            kept.clear()

    def _counts(self, texts: list[bytes]) -> list[int]:
        try:
            return [*map(int, texts)]
        except ValueError:
            at = next((at for at, text in enumerate(texts) if not text.isdigit()), 0)
            raise self._error(f"{decode(texts[at][:80])!r} is not a number of calls or their cost", at) from None

    def _error(self, message: str, at: int) -> FileFormatError:
        return FileFormatError(message, path=self._path, line=self._numbers[at], hint=DAMAGED_HINT)
