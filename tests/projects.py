"""A folder with tests in it, and `pytest --cg-bench` in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class Project:
    """A folder with tests, and results beside it."""

    def __init__(self, base: Path) -> None:
        self.folder = base / "project"
        self.folder.mkdir()
        (self.folder / "pytest.ini").write_text("[pytest]\n")
        self._results = base / "results"
        self._results.mkdir()

    def write(self, text: str, name: str = "test_it.py") -> None:
        (self.folder / name).write_text(text)

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--cg-bench", "--cg-bench-jobs=1", *options]
        return subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, check=False)

    def measure(self, *options: str, status: int = 0) -> dict[str, Any]:
        out = self._results / "result.json"
        done = self.run(f"--cg-bench-output={out}", *options)
        assert done.returncode == status, done.stdout + done.stderr
        document = json.loads(out.read_text())
        names = document["strings"]
        for benchmark in document["benchmarks"]:
            rows = (benchmark["profile"] or {"functions": []})["functions"]
            benchmark["profile"] = sorted([names[row[0]], names[row[1]], *row[2:]] for row in rows)
        return {benchmark["id"].rpartition("test_it.py::")[2]: benchmark for benchmark in document["benchmarks"]}
