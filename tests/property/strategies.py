"""Generated counts, profiles and results for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from cachegrind_bench.model.call_graph import CallGraph, Calls, Code
from cachegrind_bench.model.metrics import EVENTS, ZERO, CostModel, Counts, FunctionCost, LineCost, Profile
from cachegrind_bench.model.result import (
    Benchmark,
    Commit,
    Environment,
    ObjectFile,
    ProcessCost,
    Result,
    Run,
    Score,
    SealPart,
    SealState,
    Status,
)

# Everything but lone surrogates, which no UTF-8 file can hold.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(0, 10**12)


def possible(drawn: list[int]) -> tuple[int, ...]:
    """Make nine numbers into counts that a program can have: no more misses than accesses, level by level."""
    ir, i1, il, dr, d1r, dlr, dw, d1w, dlw = drawn
    ir += 1
    i1, d1r, d1w = i1 % (ir + 1), d1r % (dr + 1), d1w % (dw + 1)
    return ir, i1, il % (i1 + 1), dr, d1r, dlr % (d1r + 1), dw, d1w, dlw % (d1w + 1)


nine = st.lists(numbers, min_size=9, max_size=9).map(possible)
counts = nine.map(Counts.of)
names = st.tuples(texts, texts)
rows = st.dictionaries(names, nine, min_size=1, max_size=5)
models = st.one_of(
    st.just(CostModel(None)), st.builds(CostModel, st.integers(0, 99), st.integers(0, 99), st.integers(0, 999))
)
# Each level further out costs at least as much, as in every sensible model.
sensible_models = st.one_of(
    st.just(CostModel(None)),
    st.lists(st.integers(0, 999), min_size=3, max_size=3).map(lambda weights: CostModel(*sorted(weights))),
)


def profile(found: dict[tuple[str, str], tuple[int, ...]]) -> Profile:
    functions = tuple(FunctionCost(file, name, row) for (file, name), row in sorted(found.items()))
    return Profile(events=EVENTS, functions=functions)


def profile_with_lines(found: dict[tuple[str, str, int], tuple[int, ...]]) -> Profile:
    sums: dict[tuple[str, str], tuple[int, ...]] = {}
    for (file, name, _line), row in found.items():
        sums[file, name] = tuple(map(int.__add__, sums.get((file, name), (0,) * 9), row))
    lines = tuple(LineCost(file, name, line, row) for (file, name, line), row in sorted(found.items()))
    return Profile(events=EVENTS, functions=profile(sums).functions, lines=lines)


profiles = rows.map(profile)
line_rows = st.dictionaries(st.tuples(texts, texts, st.integers(0, 3)), nine, min_size=1, max_size=8)
profiles_with_lines = line_rows.map(profile_with_lines)


def with_all_functions(graph: CallGraph) -> CallGraph:
    """Return the graph with its callers and callees among the functions, some of which begin at a known line."""
    own = {code: 0 for pair in graph.calls for code in pair} | dict(graph.own)
    return CallGraph(own, graph.calls, dict.fromkeys(sorted(own)[:3], 7))


codes = st.builds(Code, texts, texts, texts)
graphs = st.builds(
    CallGraph,
    st.dictionaries(codes, numbers, max_size=3),
    st.dictionaries(st.tuples(codes, codes), st.builds(Calls, numbers, numbers), max_size=3),
).map(with_all_functions)


@st.composite
def benchmarks(draw: st.DrawFn, identity: str) -> Benchmark:
    status = draw(st.sampled_from(Status))
    ok = status is Status.OK
    found = draw(profiles | profiles_with_lines)
    total = found.counts() if found.functions else ZERO
    model = draw(models)
    return Benchmark(
        id=identity,
        key=draw(texts),
        key_fields=draw(st.dictionaries(texts, texts, max_size=3)),
        command=tuple(draw(st.lists(texts, max_size=3))),
        parameters=draw(st.dictionaries(texts, texts, max_size=3)),
        tags=tuple(draw(st.lists(texts, max_size=3))),
        status=status,
        exit_status=draw(st.none() | st.integers(-255, 255)),
        error=draw(st.none() | texts),
        warnings=tuple(draw(st.lists(texts, max_size=3))),
        tool=draw(texts),
        counts=total if ok else None,
        score=Score(model=model.name, value=model.score(total)) if ok else None,
        runs=tuple(
            Run(layout=draw(numbers), counts=item)
            for item in [*draw(st.lists(counts, max_size=3)), *([total] if ok else [])]
        ),
        processes=tuple(
            ProcessCost(executable=draw(texts), counts=item) for item in draw(st.lists(counts, max_size=2))
        ),
        processes_exact=draw(st.booleans()),
        objects=tuple(ObjectFile(path=path, build_id=path) for path in draw(st.lists(texts, max_size=2))),
        wall_ms=draw(numbers),
        seal=draw(
            st.dictionaries(
                texts, st.builds(SealPart, state=st.sampled_from(SealState), why=st.none() | texts), max_size=3
            )
        ),
        profile=draw(st.just(found) | st.none()) if ok else None,
        calls=draw(st.none() | graphs),
    )


commits = st.builds(
    Commit, sha=texts, parent=st.none() | texts, branch=st.none() | texts, dirty=st.booleans(), committed_at=texts
)


@st.composite
def environments(draw: st.DrawFn) -> Environment:
    return Environment(
        key=draw(texts),
        fields=draw(st.dictionaries(texts, texts, max_size=3)),
        info=draw(st.dictionaries(texts, texts | st.integers(-(10**12), 10**12), max_size=3)),
    )


@st.composite
def results(draw: st.DrawFn) -> Result:
    identities = draw(st.lists(texts, max_size=3, unique=True))
    return Result(
        tool_version=draw(texts),
        created_at=draw(texts),
        commit=draw(st.none() | commits),
        env=draw(environments()),
        benchmarks=tuple(draw(benchmarks(identity)) for identity in identities),
    )
