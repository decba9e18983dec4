"""The harness itself: what a workflow under `tests.act` can see, leave and fail by."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from tests import act

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHECKOUT = "actions/checkout@8e8c483db84b4bee98b60c0593521ed34d9990e8"
UPLOAD = "actions/upload-artifact@b7c566a772e6b6bfb58ed0dc250532a479d7789f"
DOWNLOAD = "actions/download-artifact@37930b1c2abaa49bbe596cd826c3c89aef350131"

ACTION = """
name: Greeting
description: Greets
inputs:
  whom:
    default: world
  token:
    default: ${{ github.token }}
outputs:
  text:
    value: ${{ steps.say.outputs.text }}
  number:
    value: ${{ strategy.job-index }}
runs:
  using: composite
  steps:
    - id: say
      shell: bash
      env:
        WHOM: ${{ inputs.whom }}
        TEMP: ${{ runner.temp }}
        ACTION_PATH: ${{ github.action_path }}
      run: |
        test "$TEMP" = "$RUNNER_TEMP" && test -e "$ACTION_PATH/action.yml" && test ! -t 1 && test -z "$INPUT_WHOM"
        echo "text=hello $WHOM" >>"$GITHUB_OUTPUT"
        echo "# hello $WHOM" >>"$GITHUB_STEP_SUMMARY"
        echo "::warning file=a.c,line=3::std::sort of $WHOM"
        echo "$WHOM" >"$RUNNER_TEMP/greeting.txt"
    - shell: bash
      if: inputs.whom == 'trouble'
      run: echo no good; exit 3
    - id: after
      if: always() && inputs.whom != ''
      uses: UPLOAD
      with:
        name: greeting-${{ inputs.whom }}
        path: ${{ runner.temp }}/greeting.txt
        if-no-files-found: error
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A work tree with an action in it, its bare origin, and a folder for the rest."""

    tree: Path
    origin: Path
    folder: Path
    head: str

    def payload(self, **more: object) -> dict[str, object]:
        repository = {"full_name": "octo/project", "default_branch": "main"}
        return {"ref": "refs/heads/main", "after": self.head, "deleted": False, "repository": repository, **more}

    def run(self, workflow: str, event: str = "push", **more: object) -> act.Ran:
        file = self.folder / "workflow.yml"
        text = workflow.replace("CHECKOUT", CHECKOUT).replace("UPLOAD", UPLOAD).replace("DOWNLOAD", DOWNLOAD)
        file.write_text(text, encoding="utf-8")
        options: dict[str, object] = {
            "payload": self.payload(),
            "repository": self.tree,
            "origin": self.origin,
            "artifacts": self.folder / "artifacts",
            "api_url": "http://127.0.0.1:9",
            "token": "s3cret-token",
            "timeout": 120,
            **more,
        }
        return act.run(file, event=event, **options)  # type: ignore[arg-type]

    def member(self, artifact: str, name: str) -> str:
        with zipfile.ZipFile(self.folder / "artifacts" / f"{artifact}.zip") as archive:
            return archive.read(name).decode()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    act.find("act")

    def git(folder: Path, *words: str) -> str:
        identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgSign=false"]
        done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    tree, origin = tmp_path / "tree", tmp_path / "origin.git"
    (tree / "greet").mkdir(parents=True)
    (tree / "greet" / "action.yml").write_text(ACTION.replace("UPLOAD", UPLOAD), encoding="utf-8")
    git(tree, "init", "--quiet", "--initial-branch=main")
    for number in (1, 2):
        (tree / "number.txt").write_text(f"{number}\n", encoding="utf-8")
        git(tree, "add", ".")
        git(tree, "commit", "--quiet", "--message", f"number {number}")
    head = git(tree, "rev-parse", "HEAD")
    git(tmp_path, "clone", "--quiet", "--bare", str(tree), str(origin))
    # A pull request's merge commit, as GitHub makes it.
    git(tree, "checkout", "--quiet", "-b", "topic")
    (tree / "topic.txt").write_text("topic\n", encoding="utf-8")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "topic")
    git(tree, "checkout", "--quiet", "--detach", "main")
    git(tree, "merge", "--quiet", "--no-ff", "--message", "merge", "topic")
    git(tree, "push", "--quiet", str(origin), "topic", "HEAD:refs/pull/7/merge")
    git(tree, "checkout", "--quiet", "main")
    return Place(tree=tree, origin=origin, folder=tmp_path, head=head)


def workflow(*steps: str, on: str = "push", more: str = "") -> str:
    lines = [line for step in steps for line in step.splitlines()]
    return f"name: Test\non: {on}\njobs:\n  job:\n    runs-on: ubuntu-24.04\n{more}    steps:\n" + "".join(
        f"      {line}\n" for line in lines
    )


def test_a_workflow_leaves_summary_outputs_annotations_and_an_artifact(place: Place) -> None:
    ran = place.run(
        workflow(
            "- uses: CHECKOUT",
            "- uses: ./greet\n  id: greet\n  with:\n    whom: you",
            "- run: echo '${{ steps.greet.outputs.text }}, ${{ github.sha }}'; echo end >>$GITHUB_STEP_SUMMARY",
        )
    )

    assert ran.status == 0, ran.log
    assert ran.jobs == {"job": "success"}
    assert f"hello you, {place.head}" in ran.log
    assert ran.summary == "# hello you\nend\n"
    assert ran.annotations == ["::warning file=a.c,line=3::std::sort of you"]
    assert ran.outputs["job/greet"]["text"] == "hello you"
    assert place.member("greeting-you", "greeting.txt") == "you\n"


def test_a_failing_step_of_an_action_fails_the_run_and_those_with_always_still_come(place: Place) -> None:
    ran = place.run(
        workflow(
            "- uses: CHECKOUT",
            "- uses: ./greet\n  id: greet\n  with:\n    whom: trouble",
            "- run: echo never-seen",
            "- if: always()\n  run: echo at-last",
        )
    )

    assert ran.status != 0
    assert ran.jobs == {"job": "failure"}
    assert "no good" in ran.log
    assert "at-last" in ran.log
    assert "never-seen\n" not in ran.log + "\n"
    assert place.member("greeting-trouble", "greeting.txt") == "trouble\n"
    assert [step.succeeded for step in ran.steps if step.path == ("greet",)] == [False]


def test_our_own_action_comes_from_a_folder_by_its_name(place: Place) -> None:
    ran = place.run(
        workflow("- uses: cachegrind-bench/cachegrind-bench/greet@v1\n  id: greet"),
        actions={"cachegrind-bench/cachegrind-bench": place.tree},
    )

    assert ran.status == 0, ran.log
    assert ran.outputs["job/greet"] == {"text": "hello world", "number": "0"}


def test_an_action_maps_its_outputs_whatever_its_last_step_says(place: Place) -> None:
    action = """
name: Two
description: Has an output that its last step names as well
outputs:
  text:
    value: mapped
runs:
  using: composite
  steps:
    - shell: bash
      run: |
        # a script ends the file's steps
        echo text=inner >>"$GITHUB_OUTPUT"

        echo summary >>"$GITHUB_STEP_SUMMARY"

# and this comes after them
branding:
  icon: activity
"""
    (place.tree / "action.yml").write_text(action, encoding="utf-8")
    steps = "- uses: octo/actions@v1\n  id: two", "- run: echo got ${{ steps.two.outputs.text }}"
    ran = place.run(workflow(*steps), actions={"octo/actions": place.tree})

    assert ran.status == 0, ran.log
    assert "\ngot mapped\n" in ran.log
    assert ran.summary == "summary\n"
    assert ran.outputs == {"job/two": {"text": "mapped"}, "job/two/0": {"text": "inner"}}
    assert [step.path for step in ran.steps] == [("0",), ("two", "0"), ("two",), ("2",)]


def test_an_unknown_runner_is_an_error_not_a_success(place: Place) -> None:
    with pytest.raises(AssertionError, match="does not know"):
        place.run(workflow("- run: echo never").replace("ubuntu-24.04", "windows-2022"))


def test_a_matrix_has_numbered_jobs_and_a_later_job_sees_their_artifacts(place: Place) -> None:
    text = """
name: Test
on: push
jobs:
  many:
    runs-on: ubuntu-24.04
    strategy:
      matrix:
        whom: [one, two, three]
    steps:
      - uses: octo/actions/greet@v1
        id: greet
        with:
          whom: ${{ matrix.whom }}
      - uses: UPLOAD
        with:
          name: again-${{ steps.greet.outputs.number }}-${{ strategy.job-index }}
          path: ${{ runner.temp }}
  collect:
    needs: many
    if: always()
    runs-on: ubuntu-24.04
    steps:
      - uses: DOWNLOAD
        with:
          pattern: greeting-*
          path: got
      - run: head got/*/greeting.txt; test "${{ needs.many.result }}" = success
"""
    ran = place.run(text, actions={"octo/actions": place.tree})

    assert ran.status == 0, ran.log
    assert ran.jobs == {"many": "success", "collect": "success"}
    assert [place.member(f"again-{number}-{number}", "greeting.txt") for number in range(3)] == [
        "one\n",
        "two\n",
        "three\n",
    ]
    assert "got/greeting-three/greeting.txt" in ran.log


def test_a_pull_request_is_its_merge_commit_alone(place: Place) -> None:
    pull = {"number": 7, "base": {"ref": "main"}, "head": {"ref": "topic"}}
    ran = place.run(
        workflow(
            "- uses: CHECKOUT\n  with:\n    persist-credentials: false",
            "- run: |\n    ls\n    git rev-list --count HEAD; git remote get-url origin; git config --list --local\n"
            '    git status --short --branch; echo "$GITHUB_REF $GITHUB_BASE_REF $GITHUB_HEAD_REF"',
            on="pull_request",
        ),
        event="pull_request",
        payload=place.payload(number=7, pull_request=pull),
    )

    assert ran.status == 0, ran.log
    assert f"\n1\nfile://{place.origin}\n" in ran.log
    assert "topic.txt" in ran.log
    assert "## HEAD (no branch)" in ran.log
    assert "refs/pull/7/merge main topic" in ran.log
    assert "extraheader" not in ran.log


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ("ref: topic", "topic 1 origin/topic"),
        ("ref: ${{ github.sha }}\n    fetch-depth: 2", "HEAD 2"),
        ("ref: main\n    fetch-depth: 0", "main 2 origin/main origin/topic"),
        ("fetch-depth: 0\n    path: below", "main 2 origin/main origin/topic"),
        ("ref: nowhere", "refs/heads/nowhere"),
    ],
)
def test_a_checkout_has_the_ref_and_the_depth_it_asks_for(place: Place, inputs: str, said: str) -> None:
    ask = "$(git rev-parse --abbrev-ref HEAD) $(git rev-list --count HEAD) $(git branch -r --format='%(refname:short)' | xargs)"
    ran = place.run(
        workflow(
            f"- uses: CHECKOUT\n  with:\n    {inputs}",
            f'- run: if [ -d below ]; then cd below; fi; echo "said {ask}"; git config --get-regexp extraheader',
        )
    )

    if "nowhere" in inputs:
        assert ran.status != 0
        assert said in ran.annotations[0]
    else:
        assert ran.status == 0, ran.log
        assert f"\nsaid {said}" in ran.log
        assert "\nhttp.https://github.com/.extraheader AUTHORIZATION: basic " in ran.log


@pytest.mark.parametrize("event", ["workflow_run", "schedule", "merge_group", "workflow_dispatch"])
def test_other_events_bring_their_ref_and_their_payload(place: Place, event: str) -> None:
    payloads: dict[str, dict[str, object]] = {
        "workflow_run": {"workflow_run": {"id": 12345678901}, "ref": None},
        "schedule": {"schedule": "0 3 * * *", "ref": None},
        "merge_group": {"merge_group": {"head_ref": "refs/heads/main", "head_sha": place.head}},
        "workflow_dispatch": {"inputs": {"why": "so"}},
    }
    more = payloads[event]
    on = {"workflow_run": "{workflow_run: {workflows: [Test]}}", "schedule": "{schedule: [{cron: 0 3 * * *}]}"}
    ran = place.run(
        workflow(
            "- uses: CHECKOUT\n  with:\n    fetch-depth: 0",
            '- run: |\n    echo "$GITHUB_EVENT_NAME $GITHUB_REF $GITHUB_SHA $(git rev-list --count HEAD)"\n'
            '    cat "$GITHUB_EVENT_PATH"',
            on=on.get(event, event),
        ),
        event=event,
        payload=place.payload(**more),
    )

    assert ran.status == 0, ran.log
    assert f"{event} refs/heads/main {place.head} 2" in ran.log
    assert json.dumps(next(iter(more.values()))) in ran.log


@pytest.fixture
def api() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers['Authorization']}")
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name for it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_api_is_the_one_that_was_given_and_nothing_else_is_reached(
    place: Place, api: tuple[str, list[str]]
) -> None:
    url, asked = api
    script = (
        "import os, urllib.request as r\n"
        "r.urlopen(r.Request(os.environ['GITHUB_API_URL'] + '/pulls', headers={'Authorization': os.environ['TOKEN']}))\n"
        "try: r.urlopen('https://github.com', timeout=5)\n"
        "except OSError: print('no', 'network')\n"
    )
    step = '- env:\n    TOKEN: Bearer ${{ github.token }}\n  run: python3 -c "$SCRIPT"'
    ran = place.run(workflow(step), api_url=url, environ={"SCRIPT": script})

    assert ran.status == 0, ran.log
    assert asked == ["/pulls Bearer s3cret-token"]
    assert "no network" in ran.log


def test_a_second_artifact_of_the_same_name_fails(place: Place) -> None:
    make = "- run: mkdir -p out/deep; echo 1 >out/a.txt; echo 2 >out/deep/b.txt; echo 3 >out/.hidden"
    upload = "- uses: UPLOAD\n  with:\n    name: same\n    path: out"
    assert place.run(workflow(make, upload, upload + "\n    overwrite: true")).status == 0
    with zipfile.ZipFile(place.folder / "artifacts" / "same.zip") as archive:
        assert archive.namelist() == ["a.txt", "deep/b.txt"]

    ran = place.run(workflow(make, upload))

    assert ran.status != 0
    assert "409" in ran.annotations[0]


@pytest.mark.parametrize(
    ("path", "members"),
    [
        ("out", ["a.txt", "deep/b.txt"]),
        ("out/a.txt", ["a.txt"]),
        ("out/a.txt\nout/deep/b.txt", ["a.txt", "deep/b.txt"]),
        ("out/deep\nother", ["other/c.txt", "out/deep/b.txt"]),
        ("out/**/*.txt\n!out/a.txt", ["deep/b.txt"]),
        ("o*/*.txt", ["other/c.txt", "out/a.txt"]),
        ("nothing", None),
    ],
)
def test_members_of_an_artifact_are_relative_to_what_its_paths_share(
    tmp_path: Path, path: str, members: list[str] | None
) -> None:
    for file in ("out/a.txt", "out/deep/b.txt", "out/.hidden", "other/c.txt"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(file, encoding="utf-8")
    inputs = {"name": "it", "path": path, "if-no-files-found": "error", "archive": "true", "overwrite": "false"}
    inputs |= {"include-hidden-files": "false", "retention-days": "5"}
    env = {"INPUTS": json.dumps(inputs), "GITHUB_WORKSPACE": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "output")}
    env |= {"CG_BENCH_TEST_ARTIFACTS": str(tmp_path), "GITHUB_SERVER_URL": "https://github.com"}
    env |= {"GITHUB_REPOSITORY": "octo/project", "GITHUB_RUN_ID": "1"}
    script = act.STAND_INS / "actions" / "upload-artifact" / "upload.py"

    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, check=False)

    if members is None:
        assert done.returncode != 0
        assert done.stdout.startswith("::error::No files were found")
        return
    assert done.returncode == 0, done.stdout
    with zipfile.ZipFile(tmp_path / "it.zip") as archive:
        assert sorted(archive.namelist()) == members


def test_artifacts_come_back_by_name_and_merged(place: Place) -> None:
    ran = place.run(
        workflow(
            "- run: mkdir one two; echo 1 >one/1; echo 2 >two/2",
            "- uses: UPLOAD\n  with:\n    name: part-one\n    path: one",
            "- uses: UPLOAD\n  with:\n    name: part-two\n    path: two",
            "- uses: DOWNLOAD\n  with:\n    name: part-two\n    path: named",
            "- uses: DOWNLOAD\n  with:\n    pattern: part-*\n    path: merged\n    merge-multiple: true",
            '- run: echo "found $(ls named merged | xargs)"',
            "- uses: DOWNLOAD\n  with:\n    name: part-three",
        )
    )

    assert ran.status != 0
    assert "found merged: 1 2 named: 2" in ran.log
    assert ran.annotations == [
        "::error::Unable to download artifact(s): Artifact not found for name: part-three",
    ]


@pytest.mark.parametrize(
    ("step", "what"),
    [
        ("- uses: CHECKOUT\n  with:\n    fetch_depth: 0", "has no input 'fetch_depth'"),
        (
            "- name: Name\n  with:\n    # a comment\n    depth: |\n      0\n\n    path: x\n  uses: CHECKOUT",
            "has no input 'depth'",
        ),
        ("- uses: ./greet\n  with:\n    who: you", "./greet has no input 'who'"),
        ("- uses: somebody/else@v1", "no action somebody/else@v1 here"),
    ],
)
def test_a_wrong_name_is_seen_before_anything_runs(place: Place, step: str, what: str) -> None:
    with pytest.raises(AssertionError, match=what.replace(".", r"\.")):
        place.run(workflow(step, "- run: echo never"))


def test_what_runs_too_long_is_ended_with_all_its_children(place: Place) -> None:
    mark = place.folder / "mark"
    step = f"- run: |\n    (while :; do date >>{mark}; sleep 0.1; done) & setsid sleep 300 & sleep 300"
    with pytest.raises(TimeoutError, match="act ran for more than"):
        place.run(workflow(step), timeout=4)

    before = mark.read_text(encoding="utf-8")
    time.sleep(0.5)
    assert before
    assert mark.read_text(encoding="utf-8") == before
