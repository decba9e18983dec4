"""The fit of a model of the time, on counts and times that were made from known weights."""

from __future__ import annotations

import random
import sys

import pytest

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.model.calibration import Sample, apart, fit, least_squares
from cachegrind_bench.model.metrics import WEIGHTS
from cachegrind_bench.usecases.calibration import checked

KNOWN = (50, 6_000, 900, 3_500)  # picoseconds


def made(
    seed: int,
    *,
    noise: float = 0.05,
    jitter: float = 0.01,
    kinds: int = 14,
    known: tuple[int, ...] = KNOWN,
    missing: int | None = None,
) -> list[Sample]:
    """Return 6 kernels of each kind, of which each has more of one event, or of none but instructions."""
    draw = random.Random(seed)
    found: list[Sample] = []
    for number in range(6 * kinds):
        chief = number // 6 % 4
        shares = [1.0, *(10 ** draw.uniform(-1, 0) / 20 if chief == place else 1e-5 for place in (1, 2, 3))]
        if missing is not None and number >= missing:
            shares[3] = 0.0
        events = tuple(round(share * draw.randint(1_000_000, 9_000_000)) for share in shares)
        time = sum(map(int.__mul__, known, events)) * 2.718281828 ** draw.gauss(0, noise)
        times = tuple(round(time * (1 + abs(draw.gauss(0, jitter)))) for _ in range(3))
        found.append(Sample(f"kind{number // 6}/{number % 6}", events, times))
    return found


def test_known_weights_are_within_their_ranges_in_spite_of_noise_of_5_percent() -> None:
    """Ranges are three standard errors: at most 1 of 100 weights is outside."""
    outside = 0
    for seed in range(12):
        for known, weight in zip(KNOWN, fit(made(seed)).weights.values(), strict=True):
            assert weight.picoseconds == pytest.approx(known, rel=0.15)
            assert weight.high < 1.6 * weight.low
            outside += not weight.low <= known <= weight.high
    assert outside <= 1


def test_the_defaults_times_a_common_scale_are_found() -> None:
    known = tuple(45 * weight for weight in WEIGHTS.values())
    found = fit(made(1, noise=0, jitter=0, known=known)).weights
    assert [item.picoseconds for item in found.values()] == pytest.approx(known, rel=0.01)


def test_a_few_kernels_that_no_count_explains_do_not_move_the_weights() -> None:
    samples = made(2)
    for place in range(0, len(samples), 20):
        item = samples[place]
        samples[place] = Sample(item.name, item.events, tuple(30 * time for time in item.times))
    for known, weight in zip(KNOWN, fit(samples).weights.values(), strict=True):
        assert weight.picoseconds == pytest.approx(known, rel=0.15)


def test_intervals_say_how_well_kernels_of_other_kinds_predict_one() -> None:
    found = fit(made(3))
    assert 900 < found.half[0] < 1000 < found.half[1] < 1100
    assert 850 < found.most[0] < found.half[0]
    assert found.half[1] < found.most[1] < 1150
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("count", "said"), [(0, "none of the kernels miss the"), (1, "only 1 of the kernels misses the")]
)
def test_a_weight_that_no_kernel_exercises_keeps_its_proportion_and_is_a_guess(count: int, said: str) -> None:
    samples = [Sample(item.name, (*item.events[:3], 0), item.times) for item in made(4, known=(*KNOWN[:3], 0))]
    for place, (name, events, times) in enumerate((item.name, item.events, item.times) for item in samples[:count]):
        misses = events[0] // 20
        samples[place] = Sample(name, (*events[:3], misses), tuple(time + KNOWN[3] * misses for time in times))
    found = fit(samples)
    assert found.warnings[0].startswith(said)
    assert 3_000 < found.weights["LL misses"].picoseconds < 10_000


def test_a_weight_that_one_kind_alone_decides_is_said_to() -> None:
    samples = made(5, known=(50, 30_000, 900, 3_500))
    warnings = fit([item for item in samples if item.kind not in {"kind5", "kind9", "kind13"}]).warnings
    assert len(warnings) == 1
    assert "without kind1 (mispredicted branches) they move by more than a factor of 3" in warnings[0]


def test_starts_that_differ_are_refused_with_advice() -> None:
    calm, busy = ([item.times for item in made(6, jitter=jitter)] for jitter in (0.005, 0.06))
    assert checked(calm) == apart(calm) < 0.03
    with pytest.raises(
        MeasurementError, match=r"this machine is too busy: .* differs by [0-9.]+% in the median"
    ) as caught:
        checked(busy)
    assert "end what else is running" in str(caught.value.hint)


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(UsageError, match="needs SciPy") as caught:
        least_squares()
    assert caught.value.hint == "in a checkout of cg-bench: pip install '.[calibrate]'"
