"""The action and all workflows pass actionlint and zizmor; what is ignored is ignored in the file, with its reason."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import act

ROOT = Path(__file__).resolve().parents[2]
ZIZMOR = Path(sys.executable).parent / "zizmor"
GITHUB = sorted(
    path
    for folder in (ROOT / "examples" / "workflows", ROOT / ".github" / "workflows")
    for path in folder.rglob("*.yml")
    if path.name != "gitlab-ci.yml"
)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", GITHUB, ids=name)
def test_actionlint_has_nothing_to_say(path: Path) -> None:
    actionlint = act.find("actionlint")
    done = subprocess.run([str(actionlint), "-no-color", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", [ROOT / "action.yml", *GITHUB], ids=name)
def test_zizmor_has_nothing_to_say(path: Path) -> None:
    command = [str(ZIZMOR), "--offline", "--persona=regular", "--no-progress", "--color=never", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", [ROOT / "action.yml", *GITHUB], ids=name)
def test_what_is_ignored_has_a_reason(path: Path) -> None:
    for line in path.read_text("utf-8").splitlines():
        found = re.search(r"(?:zizmor: ignore\[[^\]]*\]|shellcheck disable=\S+)(.*)", line)
        assert found is None or len(found[1].split()) >= 3, line


@pytest.mark.parametrize("path", GITHUB, ids=name)
def test_a_workflow_begins_without_any_permission_and_reports_what_each_is_for(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.search(r"^permissions: \{\}$", text, re.MULTILINE)
    rights = "actions|attestations|contents|id-token|issues|pages|pull-requests"
    granted = re.findall(rf"^ +(?:{rights}): (?:read|write)\b(.*)$", text, re.MULTILINE)
    assert granted
    assert all(re.match(r" # \w", why) for why in granted)


@pytest.mark.parametrize("page", ["README.md", "docs/ci-guide.md"])
def test_the_workflow_in_the_text_is_one(page: str, tmp_path: Path) -> None:
    actionlint = act.find("actionlint")
    (block,) = re.findall(r"```yaml\n(on: .*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    workflow = tmp_path / "benchmarks.yml"
    workflow.write_text(block, encoding="utf-8")
    done = subprocess.run([str(actionlint), "-no-color", str(workflow)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    # And does what the example does.
    example = (ROOT / "examples" / "workflows" / "pull-request.yml").read_text("utf-8")
    assert set(re.findall(r"([\w-]+): (?:write|read)\b", block)) == set(
        re.findall(r"^ +([\w-]+): (?:write|read) #", example, re.MULTILINE)
    )
    assert re.findall(r"uses: (\S+)", block) == re.findall(r"uses: (\S+)", example)
