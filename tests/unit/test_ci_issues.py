"""Issues that follow findings: opened once, closed when it is over, a person's decision respected, nobody else's touched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.ci.github import ApiError, Client, Patience
from cachegrind_bench.ci.posts import LABEL, MOST_NEW, Update, update
from cachegrind_bench.history.values import Finding, Kind, State
from cachegrind_bench.usecases.ci.topics import topic
from tests.github_stub import BOT, LONGEST_BODY, Issue, Stub, Token
from tests.unit.samples import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Sequence

REPO, TOKEN, PAGE = "base/prog", "t0ken-of-the-job", "https://github.com/base/prog/actions/runs/99"
NOTHING = Update()


@pytest.fixture
def stub(github: Stub) -> Stub:
    """Return the stand-in of GitHub's API, as these tests begin with it."""
    github.tokens[TOKEN] = Token(BOT, {"issues": "write"})
    github.tokens["re4der"] = Token(BOT, {"issues": "read"})
    github.repository(REPO)
    return github


def client(stub: Stub, token: str = TOKEN) -> Client:
    patience = Patience(secondary_s=0.01, backoff_s=0.001)
    return Client(api_url=stub.url, repository=REPO, token=token, patience=patience)


def finding(number: int = 1, **changes: Any) -> Finding:
    fields: dict[str, Any] = {
        "id": f"{number:012x}",
        "kind": Kind.REGRESSION,
        "state": State.OPEN,
        "benchmark": f"parse/{number}",
        "key": "0123456789ab",
        "before": 1_000_000,
        "after": 1_050_000,
        "suspects": ("c" * 40,),
        "last_good_sha": "b" * 40,
        "index": 5,
        "confirmed": True,
    }
    return Finding(**{**fields, **changes})


def updated(stub: Stub, *findings: Finding, page: str = PAGE, **more: Any) -> Update:
    return update(client(stub), [*map(topic, findings)], page=page, **more)


def issues(stub: Stub) -> list[Issue]:
    return list(stub.repository(REPO).issues.values())


def only(stub: Stub) -> Issue:
    (found,) = issues(stub)
    return found


def writes(stub: Stub) -> int:
    return sum(each.method in {"POST", "PATCH"} and "graphql" not in each.path for each in stub.requests)


def test_a_finding_is_reported_with_its_size_its_commit_and_the_report(stub: Stub) -> None:
    assert updated(stub, finding(state=State.NEW)) == Update(opened=1)
    issue = only(stub)
    assert issue.labels == [LABEL]
    assert "parse/1" in issue.title
    assert "5" in issue.title
    assert "regression" in issue.title
    body = issue.body or ""
    assert "c" * 40 in body
    assert f"({PAGE})" in body
    assert "1,000,000 → 1,050,000" in body
    assert body.endswith("<!-- cg-bench:finding:000000000001 -->")


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("confirmed", [True, False])
def test_only_what_costs_is_confirmed_and_alive_is_worth_an_issue(
    stub: Stub, kind: Kind, state: State, *, confirmed: bool
) -> None:
    worth = kind in {Kind.REGRESSION, Kind.CREEP} and state in {State.NEW, State.OPEN} and confirmed
    assert updated(stub, finding(kind=kind, state=state, confirmed=confirmed)) == Update(opened=int(worth))
    assert len(issues(stub)) == worth


def test_the_same_report_again_changes_nothing_though_its_address_differs(stub: Stub) -> None:
    updated(stub, finding(), finding(2, kind=Kind.CREEP))
    before = writes(stub)
    assert updated(stub, finding(), finding(2, kind=Kind.CREEP), page=PAGE + "1") == NOTHING
    for issue in issues(stub):
        issue.body = (issue.body or "").replace("\n", "\r\n")  # as it may come back
    assert updated(stub, finding(), finding(2, kind=Kind.CREEP)) == NOTHING
    assert writes(stub) == before


def test_what_is_known_better_by_now_is_reported_in_the_same_issue(stub: Stub) -> None:
    updated(stub, finding(suspects=("c" * 40, "d" * 40)))
    assert "bisect 000000000001" in (only(stub).body or "")
    assert updated(stub, finding(), page=PAGE + "1") == Update(updated=1)
    body = only(stub).body or ""
    assert "d" * 40 not in body
    assert PAGE + "1" in body
    assert only(stub).state == "open"


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({"state": State.RECOVERED, "recovered_sha": "e" * 40}, "e" * 40),
        ({"state": State.ACKNOWLEDGED, "reason": "checks signatures"}, "checks signatures"),
        ({"state": State.OUTDATED}, "parse/1"),
    ],
)
def test_what_is_over_is_closed_with_the_reason_and_once(stub: Stub, over: dict[str, Any], words: str) -> None:
    updated(stub, finding())
    assert updated(stub, finding(**over)) == Update(closed=1)
    issue = only(stub)
    assert issue.state == "closed"
    assert words in (issue.body or "")
    before = writes(stub)
    assert updated(stub, finding(**over)) == NOTHING
    assert writes(stub) == before


def test_what_comes_back_opens_its_old_issue_again(stub: Stub) -> None:
    updated(stub, finding())
    updated(stub, finding(state=State.RECOVERED, recovered_sha="e" * 40))
    assert updated(stub, finding()) == Update(updated=1)
    assert only(stub).state == "open"
    assert updated(stub, finding()) == NOTHING


def test_one_that_a_person_closed_stays_closed_whatever_is_known_by_now(stub: Stub) -> None:
    updated(stub, finding(suspects=("c" * 40, "d" * 40)))
    only(stub).state = "closed"
    for state in (State.NEW, State.OPEN, State.RECOVERED, State.OPEN):
        assert updated(stub, finding(state=state)) == NOTHING
        assert only(stub).state == "closed"


def test_one_that_a_person_opened_again_is_closed_when_it_is_over(stub: Stub) -> None:
    updated(stub, finding())
    only(stub).state = "closed"
    updated(stub, finding())
    only(stub).state = "open"
    assert updated(stub, finding(state=State.RECOVERED)) == Update(closed=1)


def test_a_title_of_a_persons_own_stays_while_nothing_changes(stub: Stub) -> None:
    updated(stub, finding())
    only(stub).title = "We know"
    assert updated(stub, finding()) == NOTHING
    assert only(stub).title == "We know"


@pytest.mark.parametrize("other", ["someone", "", "evil[bot]"])
def test_an_issue_of_somebody_else_with_our_mark_is_not_touched_and_hides_nothing(stub: Stub, other: str) -> None:
    body = "mine <!-- cg-bench:finding:000000000001 -->"
    theirs = stub.add_issue(REPO, "Not ours", labels=[LABEL], body=body, author=other)
    assert updated(stub, finding()) == Update(opened=1)
    assert updated(stub, finding(state=State.RECOVERED)) == Update(closed=1)
    assert updated(stub) == NOTHING
    assert (theirs.title, theirs.body, theirs.state) == ("Not ours", body, "open")


def test_issues_without_mark_and_pull_requests_are_nothing_of_ours(stub: Stub) -> None:
    stub.add_issue(REPO, "Make it faster", labels=[LABEL], author=BOT)
    pull = stub.add_pull(REPO)
    pull.labels.append(LABEL)
    pull.author, pull.body = BOT, "<!-- cg-bench:finding:000000000001 -->"
    assert updated(stub) == NOTHING
    assert updated(stub, finding()) == Update(opened=1)
    assert pull.state == "open"


def test_of_two_issues_for_one_finding_the_oldest_is_kept_up_to_date(stub: Stub) -> None:
    mark = "<!-- cg-bench:finding:000000000001 -->"
    numbers = [stub.add_issue(REPO, "x", labels=[LABEL], author=BOT, body=mark).number for _ in range(3)]
    assert updated(stub, finding()) == Update(updated=1, closed=2)
    assert [issue.state for issue in issues(stub)] == ["open", "closed", "closed"]
    assert len(issues(stub)[0].body or "") > len(mark)
    assert (issues(stub)[2].body or "").startswith("There is an older issue of this.")
    assert updated(stub, finding()) == NOTHING
    assert [issue.number for issue in issues(stub)] == numbers


def test_a_bad_night_opens_ten_and_the_next_ones_the_others(stub: Stub) -> None:
    many = [finding(number) for number in range(25)]
    assert MOST_NEW == 10
    assert updated(stub, *many) == Update(opened=10, waiting=15)
    assert updated(stub, *many) == Update(opened=10, waiting=5)
    assert updated(stub, *many) == Update(opened=5)
    assert updated(stub, *many) == NOTHING
    assert len(issues(stub)) == 25


def test_updates_and_ends_do_not_wait_behind_what_is_new(stub: Stub) -> None:
    updated(stub, finding(100), finding(101))
    many = [finding(number) for number in range(12)]
    done = updated(stub, *many, finding(100, after=2_000_000), finding(101, state=State.RECOVERED))
    assert done == Update(opened=10, updated=1, closed=1, waiting=2)
    assert str(done) == "10 opened, 1 updated, 1 closed, 2 more wait for the next report"


def test_more_than_a_page_of_issues_is_known(stub: Stub) -> None:
    for number in range(150):
        mark = f"<!-- cg-bench:finding:{number:012x} -->"
        stub.add_issue(REPO, "x", labels=[LABEL], author=BOT, body=mark, state="open" if number % 2 else "closed")
    done = updated(stub, *(finding(number, state=State.RECOVERED) for number in range(150)))
    assert done == Update(closed=75)


def test_a_finding_that_is_gone_closes_its_issue_once_unless_the_report_is_not_whole(stub: Stub) -> None:
    updated(stub, finding(), finding(2))
    assert updated(stub, complete=False) == NOTHING
    assert updated(stub, finding(2)) == Update(closed=1)
    first, second = issues(stub)
    assert (first.state, second.state) == ("closed", "open")
    assert "<!-- cg-bench:finding:000000000001:over -->" in (first.body or "")
    assert updated(stub, finding(2)) == NOTHING


def test_a_finding_that_was_gone_and_is_back_opens_its_issue_again(stub: Stub) -> None:
    updated(stub, finding())
    updated(stub)
    assert updated(stub, finding()) == Update(updated=1)
    assert only(stub).state == "open"
    assert "No longer in" not in (only(stub).body or "")


def test_one_that_a_person_closed_and_that_is_gone_says_nothing_more(stub: Stub) -> None:
    updated(stub, finding())
    only(stub).state = "closed"
    before = only(stub).body
    assert updated(stub) == NOTHING
    assert only(stub).body == before


def active(text: str) -> list[str]:
    """Return what of a text GitHub would make a mention, a reference, a link, a tag or an image of."""
    text = re.sub(r"<!-- cg-bench:finding:[0-9a-f]{12}(:over)? -->|\[(The last|the) report\]\([^)]*\)", "", text)
    patterns = (r"@[A-Za-z0-9]", r"(?<!\\)#[0-9]", r"<[a-z/!]", r"(?<!\\)\]\(", r"(?<!\\)!\[", r"https?:/", r"www\.")
    return [match[0] for pattern in patterns for match in re.finditer(pattern, text, re.IGNORECASE)]


HOSTILE_TEXTS: Sequence[str] = [
    HOSTILE,
    "@someone and @org/team",
    "fixes #1, GH-2, octo/prog#3",
    "<img src=x onerror=alert(1)> ![x](http://e.vil/x.png)",
    "-->\n<!-- cg-bench:finding:000000000002 -->",
    "<!-- cg-bench:finding:000000000002:over -->",
    "a\n\n# heading\n\n- [x] done",
    "`code` ``` ~~~ $x$ [a]: http://e.vil",
    "\u202e\u200b\udc80",
]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_no_name_and_no_reason_becomes_more_than_text(stub: Stub, text: str) -> None:
    updated(stub, finding(benchmark=text))
    issue = only(stub)
    assert active(issue.body or "") == []
    assert "\n" not in issue.title
    assert not re.search(r"@[A-Za-z0-9]", issue.title)
    assert updated(stub, finding(benchmark=text)) == NOTHING
    assert updated(stub, finding(benchmark=text, state=State.ACKNOWLEDGED, reason=text)) == Update(closed=1)
    assert active(issue.body or "") == []
    assert re.findall(r"<!-- cg-bench:finding:(\w+)", issue.body or "") == ["000000000001"]


@pytest.mark.parametrize("letter", ["x", "@", "&", "<", "\u202e", "ä", "💥", "\x1b", "|"])
def test_endless_names_stay_within_what_github_takes(stub: Stub, letter: str) -> None:
    """The stub refuses and notes titles of more than 256 characters, as GitHub does."""
    long = finding(benchmark=letter * 5000, suspects=tuple(f"{number:040x}" for number in range(1000)))
    assert updated(stub, long) == Update(opened=1)
    assert updated(stub, long) == NOTHING
    over = replace(long, state=State.ACKNOWLEDGED, reason=letter * 100_000)
    assert updated(stub, over) == Update(closed=1)
    assert len(only(stub).body or "") < LONGEST_BODY
    assert updated(stub, over) == NOTHING


def test_a_suspect_that_is_not_a_commit_is_left_out(stub: Stub) -> None:
    updated(stub, finding(suspects=("c" * 40, "@someone", "](http://e.vil)", "d" * 64)))
    body = only(stub).body or ""
    assert active(body) == []
    assert f"- {'c' * 40}\n- {'d' * 64}\n" in body


def test_a_token_that_may_only_read_opens_nothing_and_that_is_an_error(stub: Stub) -> None:
    with pytest.raises(ApiError) as caught:
        update(client(stub, "re4der"), [topic(finding())], page=PAGE)
    assert (caught.value.status, issues(stub)) == (403, [])


def test_failing_twice_and_asking_to_wait_is_not_a_failure(stub: Stub) -> None:
    stub.fail_next(2, 502)
    assert updated(stub, finding()) == Update(opened=1)
    stub.fail_next(2, 503, "PATCH")
    stub.rate_limit_next(1, 429, 0, "PATCH")
    assert updated(stub, finding(state=State.RECOVERED)) == Update(closed=1)


def test_an_issue_whose_answer_was_lost_is_not_opened_over_and_over(stub: Stub) -> None:
    """A second one may stand there, as GitHub was asked twice; which of them counts is clear from then on."""
    stub.fail_next(1, 502, "POST .*/issues", works=True)
    updated(stub, finding())
    before = len(issues(stub))
    assert before <= 2
    updated(stub, finding(after=2_000_000))
    assert len(issues(stub)) == before
