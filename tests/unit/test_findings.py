"""What a series tells: who is suspected, what was accepted, what is new, and what has recovered."""

from __future__ import annotations

import random
import time

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import UsageError
from cachegrind_bench.history.accepted import Accepted
from cachegrind_bench.history.findings import Options
from cachegrind_bench.history.lifecycle import reported_before
from cachegrind_bench.history.values import Kind, State
from cachegrind_bench.model.result import Release
from tests.unit.detecting import KEY, brief, found, line, series, sha

OTHER = "ba9876543210"


def accept(place: int, benchmark: str = "*", reason: str = "meant") -> Accepted:
    return Accepted(benchmark=benchmark, commit=sha(place)[:7], reason=reason, line=1)


def test_no_readings_say_nothing() -> None:
    assert found(series([])) == ()


def test_equal_readings_say_nothing() -> None:
    assert found([1000] * 100) == ()


def test_a_regression_names_its_commit() -> None:
    (finding,) = found([1000] * 10 + [1010] * 10)
    assert finding.kind is Kind.REGRESSION
    assert finding.state is State.OPEN
    assert (finding.benchmark, finding.key) == ("sieve", KEY)
    assert (finding.before, finding.after) == (1000, 1010)
    assert finding.suspects == (sha(10),)
    assert (finding.last_good_sha, finding.index, finding.confirmed) == (sha(9), 10, True)
    assert (finding.recovered_sha, finding.reason) == (None, None)
    assert len(finding.id) == 12


def test_an_improvement_is_reported_as_well() -> None:
    assert brief(found([1000] * 10 + [900] * 10)) == [("improvement", "open", 10)]


def test_all_commits_since_the_last_reading_are_suspects() -> None:
    (finding,) = found(series([1000, 1000, 1010, 1010], at=[0, 3, 7, 9]))
    assert finding.suspects == tuple(sha(place) for place in (4, 5, 6, 7))
    assert finding.last_good_sha == sha(3)


def test_one_reading_of_a_new_level_is_not_confirmed() -> None:
    (finding,) = found([1000] * 10 + [1010])
    assert not finding.confirmed


def test_the_smallest_step_is_an_option() -> None:
    values = [100_000] * 10 + [100_100] * 10
    assert found(values) == ()
    assert brief(found(values, options=Options(minimum_step=500))) == [("regression", "open", 10)]
    assert found([1000] * 10 + [1010] * 10, options=Options(minimum_step=20_000)) == ()


@pytest.mark.parametrize("options", [{"minimum_step": 0}, {"creep_budget": -1}])
def test_an_option_below_what_makes_sense_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="above zero"):
        Options(**options)


def test_a_bump_is_a_regression_that_recovered() -> None:
    (finding,) = found([1000] * 10 + [1010] * 5 + [1000] * 10)
    assert (finding.kind, finding.state, finding.index) == (Kind.REGRESSION, State.RECOVERED, 10)
    assert finding.recovered_sha == sha(15)


def test_what_comes_nearly_back_has_recovered() -> None:
    assert brief(found([100_000] * 10 + [101_000] * 5 + [100_100] * 10)) == [("regression", "recovered", 10)]


def test_what_comes_half_back_has_not() -> None:
    assert brief(found([1000] * 10 + [1010] * 5 + [1005] * 10)) == [
        ("regression", "open", 10),
        ("improvement", "open", 15),
    ]


def test_one_reading_does_not_make_a_recovery() -> None:
    findings = found([1000] * 10 + [1010] * 5 + [1000])
    assert brief(findings)[0] == ("regression", "open", 10)
    assert [finding.confirmed for finding in findings] == [True, False]


def test_one_improvement_makes_several_regressions_recover() -> None:
    values = [1000] * 10 + [1010] * 10 + [1020] * 10 + [1000] * 10
    assert brief(found(values)) == [("regression", "recovered", 10), ("regression", "recovered", 20)]


def test_an_improvement_beyond_recovery_is_reported_too() -> None:
    values = [1000] * 10 + [1010] * 10 + [900] * 10
    assert brief(found(values)) == [("regression", "recovered", 10), ("improvement", "open", 20)]


def test_the_loss_of_an_improvement_is_a_regression() -> None:
    values = [1000] * 10 + [900] * 10 + [1000] * 10
    assert brief(found(values)) == [("improvement", "recovered", 10), ("regression", "open", 20)]


def test_an_accepted_change_is_shown_with_its_reason() -> None:
    (finding,) = found([1000] * 10 + [1010] * 10, accepted=[accept(10, reason="checks its input now")])
    assert (finding.state, finding.reason) == (State.ACKNOWLEDGED, "checks its input now")
    assert (finding.before, finding.after) == (1000, 1010)


def test_any_suspect_may_be_the_accepted_one() -> None:
    values = series([1000, 1000, 1010, 1010], at=[0, 3, 7, 9])
    assert [brief(found(values, accepted=[accept(place)]))[0][1] for place in (3, 4, 7, 8)] == [
        "new",
        "acknowledged",
        "acknowledged",
        "new",
    ]


def test_what_was_accepted_for_another_benchmark_says_nothing_about_this_one() -> None:
    assert brief(found([1000] * 10 + [1010] * 10, accepted=[accept(10, "other*")])) == [("regression", "open", 10)]


def test_a_change_after_an_accepted_one_is_judged_by_the_new_level() -> None:
    values = [1000] * 10 + [1100] * 10 + [1110] * 10
    assert brief(found(values, accepted=[accept(10)])) == [
        ("regression", "acknowledged", 10),
        ("regression", "open", 20),
    ]


def test_what_the_previous_report_does_not_have_is_new() -> None:
    (finding,) = found([1000] * 10 + [1010] * 10)
    assert brief(found([1000] * 10 + [1010] * 10, previous={})) == [("regression", "new", 10)]
    assert brief(found([1000] * 10 + [1010] * 10, previous={finding.id: True})) == [("regression", "open", 10)]


def test_night_after_night_a_step_is_news_as_a_candidate_and_again_when_it_is_confirmed() -> None:
    values, told, previous = [1000] * 10 + [1010] * 10, list[tuple[str, bool]](), dict[str, bool]()
    for night in range(9, 15):
        findings = found(values[:night], previous=previous)
        previous = reported_before(findings, {}, ())
        told += [(finding.state.value, finding.confirmed) for finding in findings]
    assert told == [("new", False), ("new", True), ("open", True), ("open", True)]


def test_a_candidate_without_further_readings_is_news_once() -> None:
    values = [1000] * 10 + [1010]
    (finding,) = found(values, previous={})
    assert brief(found(values, previous={finding.id: False})) == [("regression", "open", 10)]


def test_without_a_previous_report_what_was_confirmed_in_the_newest_day_is_new() -> None:
    values = [1000] * 10 + [1010] * 10
    assert brief(found(values, commits=line(20, hours=3))) == [("regression", "new", 10)]
    assert brief(found(values, commits=line(20, hours=4))) == [("regression", "open", 10)]


def test_what_is_new_is_counted_from_the_newest_commit_of_all_benchmarks() -> None:
    values = series([1000] * 10 + [1010] * 2)
    assert brief(found(values, commits=line(13, hours=12), newest=12)) == [("regression", "new", 10)]
    assert brief(found(values, commits=line(15, hours=12), newest=14)) == [("regression", "open", 10)]


def test_a_finding_keeps_its_life_when_its_benchmark_is_renamed() -> None:
    for values in ([1000] * 10 + [1010] * 5, [1000 + n for n in range(60)], [1000, 1100] * 15):
        before = found(series(values, name="old"), previous={})
        assert [finding.state for finding in before] == [State.NEW]
        known = reported_before(before, {"old": "sieve"}, ())
        assert [finding.state for finding in found(series(values), previous=known)] == [State.OPEN]
        assert [finding.state for finding in found(series(values), previous=reported_before(before, {}, ()))] == [
            State.NEW
        ]


def test_a_step_is_found_as_fast_however_much_better_everything_got_before() -> None:
    for factor in (2, 10, 1000):
        for share in (5, 10, 50):
            values = [1_000_000 * factor] * 100 + [1_000_000] * 30 + [1_000_000 + 1000 * share] * 2
            assert [(one.index, one.confirmed) for one in found(values)] == [(100, True), (130, True)]


def test_a_finding_stays_whatever_comes_far_above_it() -> None:
    values = [1_000_000] * 20 + [1_005_000] * 5
    (before,) = found(values)
    assert before.id in {finding.id for finding in found([*values, *[100_000_000] * 60])}


def test_what_was_found_under_a_key_that_is_long_gone_is_outdated() -> None:
    for values in ([1000] * 20 + [1050] * 20, [1000, 1050] * 20):
        past = series([*values, *[1000] * 100], keys=[KEY] * 40 + [OTHER] * 100)
        assert [finding.state for finding in found(past)] == [State.OUTDATED]
        lately = series([*values, *[1000] * 10], keys=[KEY] * 40 + [OTHER] * 10)
        assert [finding.state for finding in found(lately)] == [State.OPEN]


def test_what_was_found_in_a_benchmark_that_is_no_longer_run_is_outdated() -> None:
    values = series([1000] * 10 + [1010] * 5)
    assert brief(found(values, commits=line(29), newest=28)) == [("regression", "open", 10)]
    assert brief(found(values, commits=line(31), newest=30)) == [("regression", "outdated", 10)]


def test_a_level_that_came_back_little_by_little_has_recovered() -> None:
    values = [10_000] * 20 + [10_500] * 20 + [10_500 - 9 * n for n in range(56)] + [10_000] * 10
    (finding,) = found(values)
    assert (finding.kind, finding.state) == (Kind.REGRESSION, State.RECOVERED)
    assert finding.recovered_sha is not None
    assert values[int(finding.recovered_sha[:7], 16) - 1] < 10_020


def test_from_nothing_to_something_is_reported_once() -> None:
    assert brief(found([0] * 20 + [100] * 20)) == [("regression", "open", 20)]


def test_in_a_short_history_large_steps_are_steps() -> None:
    for length in range(3, 8):
        kinds = {finding.kind for finding in found([1_000_000 + 50_000 * n for n in range(length)])}
        assert kinds == {Kind.REGRESSION}


def test_two_readings_of_one_commit_under_two_keys_are_judged_each_by_its_key() -> None:
    values = [number for n in range(14) for number in ((1000 if n < 8 else 1050,) if n < 8 else (1050, 2000))]
    places = [n for n in range(14) for _ in range(1 if n < 8 else 2)]
    keys = [key for n in range(14) for key in ((KEY,) if n < 8 else (KEY, OTHER))]
    (finding,) = found(series(values, at=places, keys=keys))
    assert (finding.index, finding.suspects, finding.key) == (8, (sha(8),), KEY)


def test_an_accepted_or_recovered_change_is_not_new() -> None:
    assert brief(found([1000] * 10 + [1010] * 2, previous={}, accepted=[accept(10)])) == [
        ("regression", "acknowledged", 10)
    ]
    assert brief(found([1000] * 10 + [1010] * 5 + [1000] * 5, previous={})) == [("regression", "recovered", 10)]


def test_a_finding_keeps_its_name_while_the_series_grows() -> None:
    values = [1000] * 10 + [1010] * 5 + [1000] * 5 + [1100] * 5
    names = {found(values[:length])[0].id for length in range(11, len(values) + 1)}
    assert len(names) == 1


def test_the_same_change_of_two_benchmarks_has_two_names() -> None:
    values = [1000] * 10 + [1010] * 10
    names = {found(series(values, name=name))[0].id for name in ("a", "b")}
    assert len(names) == 2


def test_a_finding_keeps_its_name_when_a_commit_before_it_is_measured_later() -> None:
    (before,) = found(series([1000, 1000, 1010, 1010], at=[0, 3, 7, 9]))
    narrowed = series([1000, 1000, 1010, 1010, 1010], at=[0, 3, 5, 7, 9])
    (after,) = found(narrowed, previous={before.id: True})
    assert after.suspects == (sha(4), sha(5))
    assert (after.id, after.state) == (before.id, State.OPEN)


def test_a_finding_keeps_its_name_when_its_range_shrinks_from_the_other_side() -> None:
    (before,) = found(series([1000, 1000, 1010, 1010], at=[0, 3, 7, 9]))
    (after,) = found(series([1000, 1000, 1000, 1010, 1010], at=[0, 3, 5, 7, 9]))
    assert after.suspects == (sha(6), sha(7))
    assert after.id == before.id


def test_readings_of_two_keys_are_not_compared() -> None:
    assert found(series([1000] * 10 + [1010] * 10, keys=[KEY] * 10 + [OTHER] * 10)) == ()


def test_each_key_is_judged_by_itself() -> None:
    values = [1000] * 5 + [1010] * 5 + [2000] * 5 + [2020] * 5
    findings = found(series(values, keys=[KEY] * 10 + [OTHER] * 10))
    assert brief(findings) == [("regression", "open", 5), ("regression", "open", 15)]
    assert [finding.key for finding in findings] == [KEY, OTHER]


def test_two_machines_that_take_turns_hide_nothing() -> None:
    values = [number for pair in range(20) for number in ((1000, 2000) if pair < 10 else (1010, 2000))]
    (finding,) = found(series(values, keys=[KEY, OTHER] * 20))
    assert (finding.index, finding.suspects) == (20, (sha(19), sha(20)))


def test_a_change_that_two_machines_saw_is_reported_once_with_the_fewest_suspects() -> None:
    values = [number for pair in range(20) for number in ((1000, 2000) if pair < 10 else (1010, 2020))]
    keys = [KEY, OTHER] * 20
    places = [place for place in range(40) if place not in (17, 18)]
    readings = series([values[place] for place in places], at=places, keys=[keys[place] for place in places])
    findings = found(readings)
    # The one machine measured 16 and 20, the other 19 and 21.
    assert [finding.suspects for finding in findings] == [(sha(20), sha(21))]


def test_slow_growth_is_creep() -> None:
    (finding,) = found([10_000 + 2 * number for number in range(200)])
    assert (finding.kind, finding.state, finding.confirmed) == (Kind.CREEP, State.OPEN, True)
    assert (finding.before, finding.after) == (10_004, 10_394)
    # 2 % above the best, as the median of five readings.
    assert finding.index == 105
    assert finding.last_good_sha == sha(2)
    assert finding.suspects == tuple(sha(place) for place in range(3, 200))


def test_the_budget_is_an_option() -> None:
    values = [10_000 + 2 * number for number in range(200)]
    assert found(values, options=Options(creep_budget=50_000)) == ()


def test_creep_names_the_few_commits_that_brought_it() -> None:
    (finding,) = found([10_000 + 15 * (number // 10) for number in range(180)])
    assert finding.kind is Kind.CREEP
    assert finding.suspects == tuple(sha(place) for place in range(10, 180, 10))


def test_creep_is_counted_from_the_last_release() -> None:
    values = [10_000 + 2 * number for number in range(200)]
    releases = [Release(name="1", sha=sha(20)), Release(name="2", sha=sha(120)), Release(name="x", sha="f" * 40)]
    assert found(values, releases=releases) == ()
    (finding,) = found(values, releases=releases[:1])
    assert finding.before == 10_044


def test_creep_keeps_its_name_while_it_goes_on() -> None:
    values = [10_000 + 2 * number for number in range(300)]
    assert len({found(values[:length])[0].id for length in range(110, 301, 10)}) == 1


def test_what_was_accepted_before_the_last_release_does_not_count_any_more() -> None:
    values = [10_000 + 2 * number for number in range(200)]
    (finding,) = found(values, releases=[Release(name="1", sha=sha(20))], accepted=[accept(10)])
    assert (finding.state, finding.before) == (State.OPEN, 10_044)


def test_accepted_creep_is_shown_and_the_level_begins_anew() -> None:
    values = [10_000 + 2 * number for number in range(200)]
    (finding,) = found(values, accepted=[accept(150)])
    assert (finding.kind, finding.state, finding.reason) == (Kind.CREEP, State.ACKNOWLEDGED, "meant")
    more = [10_000 + 2 * number for number in range(300)]
    findings = found(more, accepted=[accept(150)])
    assert [(finding.kind, finding.state) for finding in findings] == [
        (Kind.CREEP, State.ACKNOWLEDGED),
        (Kind.CREEP, State.OPEN),
    ]
    assert findings[0].id != findings[1].id


def test_a_step_explains_itself_and_is_not_reported_as_creep_again() -> None:
    assert brief(found([1000] * 20 + [1100] * 20)) == [("regression", "open", 20)]


def test_accepting_a_step_does_not_hide_what_crept_before_it() -> None:
    values = [10_000 + 2 * number for number in range(150)] + [11_500] * 20
    findings = found(values, accepted=[accept(150)])
    assert [(finding.kind, finding.state) for finding in findings] == [
        (Kind.CREEP, State.OPEN),
        (Kind.REGRESSION, State.ACKNOWLEDGED),
    ]


def test_creep_that_was_accepted_and_is_gone_is_not_told() -> None:
    values = [10_000 + 2 * number for number in range(150)] + [10_300 - 3 * number for number in range(100)]
    assert found(values, accepted=[accept(150)]) == ()


def test_what_is_measured_otherwise_now_has_no_creep() -> None:
    values = [10_000 + 2 * number for number in range(150)] + [20_000] * 10
    assert found(series(values, keys=[KEY] * 150 + [OTHER] * 10)) == ()


def test_two_levels_that_alternate_are_one_finding_and_no_alerts() -> None:
    rng = random.Random(4)
    values = [1000] * 40 + [rng.choice([1000, 1020]) for _ in range(60)]
    (finding,) = found(values)
    assert (finding.kind, finding.state) == (Kind.UNSTABLE, State.OPEN)
    assert (finding.before, finding.after) == (1000, 1020)
    assert 40 <= finding.index < 45


def test_a_step_before_the_unsteady_readings_is_still_told() -> None:
    rng = random.Random(4)
    values = [1000] * 40 + [1100] * 40 + [rng.choice([1100, 1120]) for _ in range(60)]
    assert [finding[0] for finding in brief(found(values))] == ["regression", "unstable"]


def test_a_benchmark_that_became_steady_again_has_recovered() -> None:
    rng = random.Random(4)
    values = [1000] * 40 + [rng.choice([1000, 1020]) for _ in range(60)] + [1000] * 40
    (finding,) = found(values)
    assert (finding.kind, finding.state) == (Kind.UNSTABLE, State.RECOVERED)
    assert finding.recovered_sha is not None


def test_an_unstable_benchmark_keeps_its_name() -> None:
    rng = random.Random(4)
    values = [1000] * 40 + [rng.choice([1000, 1020]) for _ in range(100)]
    assert len({found(values[:length])[-1].id for length in range(90, 141, 5)}) == 1


def test_instability_can_be_accepted() -> None:
    rng = random.Random(4)
    values = [1000] * 40 + [rng.choice([1000, 1020]) for _ in range(60)]
    (finding,) = found(values, accepted=[accept(60, reason="reads the clock")])
    assert (finding.state, finding.reason) == (State.ACKNOWLEDGED, "reads the clock")


def test_findings_come_in_the_order_of_their_commits() -> None:
    values = [10_000 + 2 * number + (500 if number >= 60 else 0) for number in range(200)]
    findings = found(values)
    assert [finding.index for finding in findings] == sorted(finding.index for finding in findings)
    assert [finding.kind for finding in findings] == [Kind.REGRESSION, Kind.CREEP]


def test_a_thousand_steady_benchmarks_take_seconds_not_minutes() -> None:
    steady, commits = series([10**9 + number % 7 for number in range(500)]), line(500)
    start = time.process_time()
    for _ in range(1000):
        assert found(steady, commits=commits) == ()
    assert time.process_time() - start < 10  # 0.05 s on a quiet machine


def test_a_creep_that_was_reported_stays_until_it_is_clearly_less() -> None:
    values = [100_000] * 20 + [100_000 + 100 * n for n in range(20)] + [101_950] * 10
    assert found(values, previous={}) == ()
    (creep,) = found(values, options=Options(creep_budget=19_000))
    assert brief(found(values, previous={creep.id: True})) == [("creep", "open", 38)]
    values += [101_950 - 50 * n for n in range(11)] + [101_400] * 8
    assert found(values, previous={creep.id: True}) == ()


def test_a_few_readings_are_no_creep() -> None:
    assert found([1000, 1030, 1000, 1030, 1000, 1030]) == ()


def test_who_became_unstable_again_is_news() -> None:
    jumping, steady = [1000, 1100] * 15, [1000] * 40
    before = found([*jumping, *steady])
    assert [finding.state for finding in before] == [State.RECOVERED]
    again = found([*jumping, *steady, *jumping], previous=reported_before(before, {}, ()))
    assert [(finding.kind, finding.state) for finding in again] == [(Kind.UNSTABLE, State.NEW)]


def test_what_crept_under_a_key_counts_while_that_key_is_still_measured() -> None:
    values = [1000 + 2 * n for n in range(20)] + [5000] * 10
    creeping = found(series(values, keys=[KEY] * 20 + [OTHER] * 10))
    assert creeping == ()
    values += [1040]
    assert brief(found(series(values, keys=[KEY] * 20 + [OTHER] * 10 + [KEY]))) == [("creep", "open", 15)]


def test_a_commit_dated_in_the_future_is_not_new_for_ever() -> None:
    values = [1000] * 10 + [1010] * 20
    commits = line(30)
    commits[11] = replace(commits[11], committed_at="9999-12-31T00:00:00Z")
    assert brief(found(values, commits=commits)) == [("regression", "open", 10)]
