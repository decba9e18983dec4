"""Where the functions of Python profiles are: their lines, and their files as the reader of a report wants them.

Reads source files; must not know where profiles come from.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from cachegrind_bench.hermetic import files
from cachegrind_bench.measure.definitions import first_lines
from cachegrind_bench.model.python_profile import PythonFunction, PythonProfile, PythonRow, profile_of
from cachegrind_bench.vcs.git import top_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_LONGEST_SOURCE = 1 << 24


class Places:
    """The places of functions of programs that ran in one directory; each source is read once."""

    def __init__(self, cwd: Path, *, read: Callable[[str], bytes | None] | None = None) -> None:
        """`read` gets an absolute path and returns the source there, None if there is none."""
        self._named, self._cwd = str(cwd), os.path.realpath(cwd)
        # As pull requests name files, wherever in the repository a benchmark runs.
        self._base = str(top_folder(Path(self._cwd)) or self._cwd)
        self._read = read or _source
        self._lines: dict[str, dict[str, int]] = {}

    def located(self, profile: PythonProfile) -> PythonProfile:
        """Return the profile with the lines of functions (0: not known), and with files relative to the repository.

        Outside of one they are relative to the directory; what lies elsewhere keeps its whole path.
        """
        moved: dict[PythonFunction, PythonFunction] = {}
        for function in profile.functions:
            absolute = self._absolute(function.file)
            if function.file not in self._lines:
                # <string>, <frozen importlib._bootstrap> and the like are no files
                source = None if function.file.startswith("<") else self._read(absolute)
                self._lines[function.file] = {} if source is None else first_lines(source)
            line = self._lines[function.file].get(function.name, 0)
            moved[function] = PythonFunction(_shortened(function.file, absolute, self._base), function.name, line)
        return profile_of(tuple(_moved(profile, moved)), total=profile.total, cut=profile.cut)

    def _absolute(self, file: str) -> str:
        path = os.path.normpath(os.path.join(self._cwd, file))
        return self._cwd + path[len(self._named) :] if _is_below(path, self._named) else path


def _moved(profile: PythonProfile, moved: Mapping[PythonFunction, PythonFunction]) -> Iterator[PythonRow]:
    for path in profile.paths:
        yield PythonRow(path.parent, moved[profile.functions[path.function]], path.calls, path.ir)


def _shortened(file: str, absolute: str, base: str) -> str:
    return file if file.startswith("<") or not _is_below(absolute, base) else os.path.relpath(absolute, base)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep) and folder != os.sep


def _source(path: str) -> bytes | None:
    """Return a source file; None if it cannot be read, or is too long to be one."""
    try:
        with open(files.opened(path), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return None
            data = stream.read(_LONGEST_SOURCE + 1)
    except (OSError, ValueError):
        return None
    return data if len(data) <= _LONGEST_SOURCE else None
