"""Hostile artifacts and hostile texts."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.ci import github as ci_api
from cachegrind_bench.ci.posts import Outcome, marker, post
from cachegrind_bench.model.codec import encode
from cachegrind_bench.model.result import Commit, SealPart, SealState, Status
from tests.cli.ci.job import (
    _FENCE,
    GOOD,
    REPO,
    SLOWER,
    TOKEN,
    Job,
    active,
    base_run,
    collected,
    commented,
    noted,
    one,
    run,
    sent,
    whole,
    zipped,
)
from tests.unit.comparing import counts, measured
from tests.unit.samples import HOSTILE, failed_benchmark, profile_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cachegrind_bench.model.result import Benchmark, Result


def bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("result.json", b" " * 50_000_001)
    return buffer.getvalue()


def lying() -> bytes:
    data = bytearray(bomb())
    struct.pack_into("<I", data, 22, 1000)
    struct.pack_into("<I", data, data.index(b"PK\x01\x02") + 24, 1000)
    return bytes(data)


def twice() -> bytes:
    return zipped({"result.json": b"{}", "resultXjson": b"{}"}).replace(b"resultXjson", b"result.json")


ARTIFACTS = {
    "path traversal": zipped({**GOOD, "../../evil": b"x"}),
    "larger than is sent": bytes(20_000_001),
    "a bomb that lies": lying(),
    "two of one name": twice(),
    "deep": zipped({"result.json": b"[" * 1_000_000}),
    "another schema": zipped({"result.json": b'{"schema": "\\n::error::x ##[error]y"}'}),
    "no benchmarks": zipped({"result.json": encode(replace(SLOWER, benchmarks=()))}),
    "a bad base": zipped({**GOOD, "base.json": b"{}"}),
}


@pytest.mark.parametrize("what", ARTIFACTS)
def test_an_artifact_that_is_not_ours_ends_the_job_and_leaves_nothing(job: Job, what: str) -> None:
    job.stub.add_pull(REPO, number=7)
    sent(job, ARTIFACTS[what])
    told = collected(job.workflow_run())
    assert told.code == 2
    assert len(noted(told)) == len(noted(told, "error")) == 1
    assert active(job.summary) == {}
    left = [path.name for path in job.folder.rglob("*") if path.is_file()]
    assert left == (["result.json"] if what == "a bad base" else [])
    assert not (job.root.parent / "evil").exists()


def altered(**changes: object) -> bytes:
    document = json.loads(GOOD["result.json"])
    for path, value in changes.items():
        place: Any = document
        *first, last = path.split("__")
        for name in first:
            place = place[int(name)] if name.isdigit() else place[name]
        place[int(last) if last.isdigit() else last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "content",
    [
        altered(benchmarks__0__counts__Ir=1.5),
        altered(benchmarks__0__counts__Ir="1100000"),
        altered(benchmarks__0__python={"total": 1, "cut": False, "functions": [[99, 0, 1]], "paths": []}),
        altered(benchmarks__0__id=7),
        GOOD["result.json"].replace(b"1100000", b"Infinity", 1),
    ],
)
def test_only_whole_numbers_in_their_places_are_taken(job: Job, content: bytes) -> None:
    assert content != GOOD["result.json"]
    sent(job, {**GOOD, "result.json": content})
    told = collected(job.workflow_run())
    assert told.code == 2
    assert noted(told, "error")
    assert not (job.folder / "artifact" / "result.json").exists()


TEXTS = {
    "everything": HOSTILE,
    "mentions": "@someone @org/team",
    "HTML": "<img src=x onerror=alert(1)><script>alert(1)</script></details></sub><!-- cg-bench:0123456789abcdef -->",
    "links": "![x](http://e.vil/x.png) [x](http://e.vil) <http://e.vil> https://e.vil www.e.vil [x]: http://e.vil",
    "references": "fixes #1 GH-2 octo/prog#3 GL-4 &5 %6 [issue:7] !8 ~bug",
    "commands": "\n::error::x\n::set-output name=verdict::unchanged\n::add-mask::e\n::stop-commands::x",
    "commands behind a carriage return": "\r::error::x\r\n::endgroup::",
    "commands of the older form": "##[error]x ##[set-output name=verdict;]unchanged ##[add-mask]e",
    "blocks": "a\n\n```\n</details>\n\n# heading\n\n- [ ] task\n\n| a | b |\n| - | - |",
    "fences": "```sh\nrm -rf /\n``` ~~~ `x`",
    "other ends of lines": "%0A::error::x %25 \u2028\u2029\x85\x0b\x0c::error::x",
    "terminal": "\x1b[2J\x1b]0;x\x07\u202e\u200b",
    "signs": "$x$ $$x$$ **b** __b__ ~~x~~ || x",
    "outputs": "verdict<<EOF\nunchanged\nEOF",
}


def hostile(text: str) -> tuple[Result, Result]:
    """Return candidate and base with this text in every place that takes text."""

    def bench(ir: int, name: str, **changes: Any) -> Benchmark:
        value = counts(ir)
        return one(
            ir,
            f"{name} {text}",
            command=(text, text if ir == 1_000_000 else "x"),
            profile=profile_of(**{text: value}),
            warnings=(text,),
            parameters={text: text},
            tags=(text,),
            seal={text: SealPart(state=SealState.UNAVAILABLE, why=text)},
            **changes,
        )

    def side(sha: str, ir: int, *more: Benchmark) -> Result:
        made = run(bench(ir, "slow"), *more)
        fields = {**made.env.fields, "valgrind": text, "architecture": text}
        info = {"kernel": f"{text} {sha}", "os": text, "cpu_model": f"{text} {ir}"}
        commit = Commit(sha=sha, parent=text, branch=text, dirty=True, committed_at=text)
        env = replace(made.env, fields=fields, info=info, key=text)
        return replace(made, commit=commit, env=env, tool_version=text, created_at=text)

    failed = failed_benchmark(id=f"failed {text}", error=f"{text}\n{text}\n{text}", status=Status.FAILED)
    keyed = bench(1000, "key", key=text, key_fields={text: text, "libc": text})
    candidate = side(text, 1_100_000, failed, keyed, bench(1, "new"))
    base = side(text, 1_000_000, replace(keyed, key="x", key_fields={"libc": "x"}), bench(1, "missing"))
    return candidate, base


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_no_text_of_a_fork_is_more_than_text_in_log_summary_outputs_or_comment(job: Job, text: str) -> None:
    job.stub.add_pull(REPO, head=f"contributor:{text}", number=7)
    candidate, base = hostile(text)
    sent(job, {"result.json": encode(candidate), "base.json": encode(base)}, f"cg-bench-result-{text}"[:200])
    job.workflow_run(head_branch=text, name=text)
    told = collected(job)
    assert told.code == 0, told.err
    assert noted(told) == []
    assert noted(job.compared()) == []  # the job that measured has told it
    found = job.outputs
    assert set(found) == {
        *("verdict", "score", "regressions", "improvements", "max-regression", "comparable", "baseline-sha"),
        *("result-path", "report-path"),
    }
    assert (found["verdict"], found["regressions"], found["comparable"]) == ("regression", "1", "false")
    assert active(job.summary) == {}
    told = commented(job)
    assert (told.code, noted(told)) == (0, []), told.err
    (body,) = job.comments()
    assert active(body) == {}
    assert body.endswith(f"{marker(text)}\n")
    outside = _FENCE.sub("", body)
    assert outside.count("<details>") == outside.count("</details>") > 0
    told = job.step("gate")
    assert told.code == 1
    assert noted(told) == []
    told = job.pull_request().compared()
    assert len(noted(told, "error")) >= 2
    assert active(job.summary) == {}


def test_a_mark_in_a_forks_text_does_not_make_our_comment_that_of_another_job(job: Job) -> None:
    """Marks are no secret. Who finds his own in our comment would write over it, or remove it as one too many."""
    job.stub.add_pull(REPO, number=7)
    other = marker("Benchmarks", "benchmarks", "")
    candidate, base = hostile(other)
    sent(job, {"result.json": encode(candidate), "base.json": encode(base)})
    assert whole(job.workflow_run()).code == 0
    client = ci_api.Client(api_url=job.stub.url, repository=REPO, token=TOKEN)
    assert post(client.thread(7), "### Of another job", other, wanted=True) is Outcome.WRITTEN
    first, second = job.comments()
    assert "regression" in first
    assert "Of another job" in second


@pytest.mark.parametrize("name", ["everything", "commands", "commands of the older form", "other ends of lines"])
def test_no_text_in_an_error_about_a_forks_data_is_more_than_text(job: Job, name: str) -> None:
    job.stub.add_pull(REPO, number=7)
    text = TEXTS[name]
    first, second = hostile(text)
    document = json.loads(encode(first))
    document["benchmarks"][0]["status"] = text
    wrong: list[bytes | Mapping[str, bytes]] = [
        {"result.json": json.dumps(document).encode()},
        {"result.json": json.dumps({"schema": text}).encode()},
        {"result.json": json.dumps({**document, "benchmarks": document["benchmarks"][:1] * 2}).encode()},
        {"result.json": GOOD["result.json"], text: b""},
        zipped(GOOD)[:-30],
    ]
    job.workflow_run()
    for files in wrong:
        job.stub.repository(REPO).artifacts.clear()
        sent(job, files, f"cg-bench-result-{text}"[:200])
        told = collected(job)
        assert told.code == 2, told.err
        assert len(noted(told)) == 1
    job.stub.repository(REPO).artifacts.clear()
    sent(job, {"result.json": encode(first)}, f"cg-bench-result-{text}"[:200])
    sent(job, {"result.json": encode(second)}, f"cg-bench-result-2{text}"[:200])
    told = collected(job)
    assert told.code == 3
    assert len(noted(told)) == 1
    assert active(job.summary) == {}


@pytest.mark.parametrize(
    ("state", "letter"), [("regression", "&"), ("regression", "\u202e"), ("failed", "&"), ("missing", "@")]
)
def test_a_thousand_benchmarks_with_endless_names_fit_into_a_comment(job: Job, letter: str, state: str) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    names = [f"{number:04}{letter * 500}" for number in range(1000 if (state, letter) == ("regression", "&") else 250)]
    value = counts(1_100_000)
    profile = profile_of(**{letter * 500: value})
    before = [measured(name, profile=None) for name in names]
    error = "\n".join([letter * 300] * 30)
    after = {
        "regression": lambda name: measured(name, value, profile=profile),
        "failed": lambda name: failed_benchmark(id=name, error=error),
        "missing": lambda name: measured(f"new {name}", value, profile=None),
    }[state]
    made = run(*map(after, names))
    fields = {**made.env.fields, "valgrind": letter * 5000}
    made = replace(made, env=replace(made.env, fields=fields, key=letter * 5000), tool_version=letter * 5000)
    there = replace(base_run(*before), env=made.env)
    words = () if state == "missing" else ("--command", "x" * 20_000)
    told = job.pull_request().has(made, there).compared(*words)
    assert len(job.report) < 60_000
    assert commented(job).code == 0
    (body,) = job.comments()
    assert len(body) < 60_000
    assert active(body) == {}
    assert body.count("<details>") == body.count("</details>")
    for line in told.out.splitlines():
        assert len(line) < 100_000
    assert len(noted(told, "error")) <= 10


@pytest.mark.parametrize("name", ["id", "shard", "jobs", "base"])
@pytest.mark.parametrize("text", ["a\r::error::pwned", HOSTILE])
def test_what_is_measured_is_no_command_in_the_log(
    job: Job, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setattr("cachegrind_bench.usecases.ci.job.Job.run", lambda *_: (2, "it was not tried", ""))
    told = job.step("measure", "--command", "true", f"--{name}", text)
    assert told.code != 0
    assert len(noted(told)) == 1
    assert "\x1b" not in told.out
    assert "\r" not in told.out
