"""Whether a release agrees with itself (tag, version, changelog), its notes, and the action's tag that may move to it.

release.py check TAG [--installed TEXT]   the tag, the package's version, the changelog (and what `cg-bench --version` said) agree
release.py notes TAG                      print the changelog's section
release.py major TAG                      of all tags on stdin, print the action's (v1) if it is to move to this one, else nothing
release.py kind TAG                       of all tags on stdin, print what `gh release create` needs to know of this one
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

_TOP = Path(__file__).resolve().parent.parent
# A release, or something before it, in the one spelling that PyPI does not change (PEP 440): a tag names what is published.
_TAG = re.compile(r"v(?P<version>(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?P<before>(a|b|rc)(0|[1-9]\d*))?)", re.ASCII)
_VERSION_LINE = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_HEADING = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\S+))?[ \t]*$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# Links of the headings, which stand at the end of a changelog of this form.
_LINK = re.compile(r"^\[[^\]]+\]: \S+\n?", re.MULTILINE)


class ReleaseError(Exception):
    """A sentence that says what does not agree, and what to do."""


def version_of(tag: str) -> str:
    """Return the version that a tag names."""
    return _parsed(tag).group("version")


def is_before_a_release(tag: str) -> bool:
    """Tell whether a tag names an alpha, a beta or a candidate."""
    return _parsed(tag).group("before") is not None


def notes(changelog: str, version: str) -> str:
    """Return what the changelog says of a version, without its heading. It must be dated, and the newest of the released."""
    headings = list(_HEADING.finditer(changelog))
    names = [heading["name"] for heading in headings]
    if version not in names:
        raise ReleaseError(
            f"the changelog has no section '## [{version}] - YYYY-MM-DD': rename 'Unreleased' and begin anew"
        )
    if names.count(version) > 1:
        raise ReleaseError(f"the changelog has two sections for {version}: join them")
    place = names.index(version)
    earlier = [name for name in names[:place] if name != "Unreleased"]
    if earlier:
        raise ReleaseError(f"in the changelog {earlier[0]} stands above {version}: the newest comes first")
    if not _DATE.fullmatch(headings[place]["date"] or ""):
        raise ReleaseError(f"in the changelog {version} has no date: write '## [{version}] - YYYY-MM-DD'")
    end = headings[place + 1].start() if place + 1 < len(headings) else len(changelog)
    text = _LINK.sub("", changelog[headings[place].end() : end]).strip()
    if not text:
        raise ReleaseError(f"the changelog says nothing of {version}")
    return f"{text}\n"


def check(tag: str, *, version_file: str, changelog: str, installed: str | None = None) -> None:
    """Raise ReleaseError unless all that names the version names the same one."""
    version = version_of(tag)
    found = _VERSION_LINE.findall(version_file)
    if found != [version]:
        raise ReleaseError(
            f"the tag is {tag}, and the package's version {' and '.join(found) or 'missing'}: tag another commit"
        )
    notes(changelog, version)
    if installed is not None and installed.split()[-1:] != [version]:
        raise ReleaseError(f"the tag is {tag}, and what was built says of itself: {installed.strip()!r}")


def major_tag(tag: str, tags: list[str]) -> str | None:
    """Return the tag that users of the action follow, if it is to move to this one.

    It never moves to something before a release, nor back: after 1.3.0, a repair of 1.2 is not what followers want.
    """
    if is_before_a_release(tag):
        return None
    numbers = _numbers(tag)
    if any(_numbers(other)[0] == numbers[0] and _numbers(other) > numbers for other in _released(tags)):
        return None
    return f"v{numbers[0]}"


def release_kind(tag: str, tags: list[str]) -> str:
    """Return the option for `gh release create`: only the newest release of all is shown as the latest."""
    if is_before_a_release(tag):
        return "--prerelease"
    return "--latest" if _numbers(tag) >= max(map(_numbers, _released(tags)), default=()) else "--latest=false"


def _released(tags: list[str]) -> list[str]:
    return [tag for tag in tags if _TAG.fullmatch(tag) and not is_before_a_release(tag)]


def _parsed(tag: str) -> re.Match[str]:
    match = _TAG.fullmatch(tag)
    if match is None:
        raise ReleaseError(f"{tag!r} is no tag of a release: they look like v1.2.3 or v1.2.3rc1")
    return match


def _numbers(tag: str) -> tuple[int, ...]:
    return tuple(int(word) for word in re.findall(r"\d+", tag)[:3])


def main(arguments: list[str]) -> int:
    """Do what the arguments say; 1 and a sentence on stderr if it cannot be."""
    parser = argparse.ArgumentParser(
        prog="release.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("action", choices=["check", "notes", "major", "kind"])
    parser.add_argument("tag")
    parser.add_argument("--installed", metavar="TEXT")
    given = parser.parse_args(arguments)
    changelog = (_TOP / "CHANGELOG.md").read_text("utf-8")
    try:
        if given.action == "check":
            version_file = (_TOP / "cachegrind_bench" / "_version.py").read_text("utf-8")
            check(given.tag, version_file=version_file, changelog=changelog, installed=given.installed)
            print(f"{given.tag}: tag, version and changelog agree")
        elif given.action == "notes":
            sys.stdout.write(notes(changelog, version_of(given.tag)))
        elif given.action == "kind":
            print(release_kind(given.tag, sys.stdin.read().split()))
        else:
            print(major_tag(given.tag, sys.stdin.read().split()) or "")
    except ReleaseError as error:
        print(f"release.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
