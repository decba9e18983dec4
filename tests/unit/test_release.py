"""scripts/release.py: what has to agree before a release, and where the action's tag may move."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

_PATH = Path(__file__).resolve().parents[2] / "scripts" / "release.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", _PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["release"] = module
    spec.loader.exec_module(module)
    return module


release = _load()

CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.0] - 2026-02-03

### Added

- A thing, see [0.9].

## [1.1.0] - 2026-01-01

- Older.

[1.2.0]: https://example.org/1.2.0
[1.1.0]: https://example.org/1.1.0
"""
VERSION = '__version__ = "1.2.0"\n'


def test_a_tag_a_version_and_a_changelog_that_agree_are_a_release() -> None:
    release.check("v1.2.0", version_file=VERSION, changelog=CHANGELOG, installed="cg-bench, version 1.2.0\n")


@pytest.mark.parametrize(
    "tag", ["1.2.0", "v1", "v1.2", "v1.2.0-rc1", "v01.2.0", "v1.2.0\n", "v1.2.0rc", "v1.2.0;ls", "v1.2.٣"]
)
def test_a_tag_of_another_form_is_refused(tag: str) -> None:
    with pytest.raises(release.ReleaseError, match="is no tag of a release"):
        release.version_of(tag)


def test_another_version_in_the_package_is_refused() -> None:
    with pytest.raises(release.ReleaseError, match=r"the tag is v1\.2\.1, and the package's version 1\.2\.0"):
        release.check("v1.2.1", version_file=VERSION, changelog=CHANGELOG)


def test_another_version_that_was_built_is_refused() -> None:
    with pytest.raises(release.ReleaseError, match="says of itself"):
        release.check("v1.2.0", version_file=VERSION, changelog=CHANGELOG, installed="cg-bench, version 11.2.0")


def test_the_notes_are_the_section_without_heading_and_links() -> None:
    assert release.notes(CHANGELOG, "1.2.0") == "### Added\n\n- A thing, see [0.9].\n"


def test_the_last_section_ends_before_the_links() -> None:
    assert (
        release.notes(CHANGELOG.replace("1.2.0", "1.0.9").replace("[1.0.9] - ", "[Unreleased] - ", 1), "1.1.0")
        == "- Older.\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("## [1.2.0]", "## [1.2.9]", "no section"),
        (" - 2026-02-03", "", "no date"),
        (" - 2026-02-03", " - soon", "no date"),
        ("### Added\n\n- A thing, see [0.9].\n", "", "says nothing"),
        ("## [1.1.0]", "## [1.2.0]", "two sections"),
        ("## [Unreleased]", "## [1.3.0] - 2026-03-03\n\n- x", "stands above"),
    ],
)
def test_a_changelog_that_is_not_ready_is_refused(old: str, new: str, told: str) -> None:
    with pytest.raises(release.ReleaseError, match=told):
        release.notes(CHANGELOG.replace(old, new), "1.2.0")


@pytest.mark.parametrize(
    ("tag", "tags", "moved"),
    [
        ("v1.0.0", [], "v1"),
        ("v1.10.0", ["v1.9.0", "v1", "v1.10.0", "nightly"], "v1"),
        ("v1.2.1", ["v1.3.0"], None),
        ("v1.2.1", ["v2.0.0", "v1.2.0"], "v1"),
        ("v1.3.0rc1", ["v1.2.0"], None),
        ("v1.2.1", ["v1.3.0rc1"], "v1"),
        ("v0.2.0", [], "v0"),
    ],
)
def test_the_tag_of_the_action_moves_only_forward_and_only_to_releases(
    tag: str, tags: list[str], moved: str | None
) -> None:
    assert release.major_tag(tag, tags) == moved


@pytest.mark.parametrize(
    ("tag", "tags", "kind"),
    [
        ("v1.3.0", ["v1.3.0", "v1.2.9"], "--latest"),
        ("v1.3.0", [], "--latest"),
        ("v1.2.1", ["v2.0.0"], "--latest=false"),
        ("v1.3.0b2", ["v1.2.9"], "--prerelease"),
    ],
)
def test_only_the_newest_release_is_the_latest(tag: str, tags: list[str], kind: str) -> None:
    assert release.release_kind(tag, tags) == kind


def test_an_error_is_one_line_and_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main(["check", "v99.0.0"]) == 1
    assert capsys.readouterr().err.startswith("release.py: the tag is v99.0.0, and the package's version ")
