"""What a step hands to the runner: outputs for later steps, and the job's summary, in the files that GitHub names.

Format: https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

# GitHub refuses a step's summary of more than 1 MiB as a whole.
_MOST_SUMMARY = 1_000_000
_LONGEST_OUTPUT = 100_000


def set_outputs(environ: Mapping[str, str], values: Mapping[str, str]) -> None:
    """Set outputs of the step; outside a job, nothing happens.

    Each value stands between delimiters nobody can guess, so none can end early and set another output.
    """
    lines: list[str] = []
    for name, value in values.items():
        delimiter = f"cg-bench-{secrets.token_hex(16)}"
        # One that is not UTF-8 or is endless would make the runner refuse all of them.
        text = value.encode("utf-8", "backslashreplace").decode().replace("\0", "")[:_LONGEST_OUTPUT]
        lines.append(f"{name}<<{delimiter}\n{text}\n{delimiter}\n")
    _append(environ.get("GITHUB_OUTPUT"), "".join(lines))


def add_summary(environ: Mapping[str, str], markdown: str) -> None:
    """Append to the job's summary; outside a job, nothing happens. What GitHub would refuse as too long is cut."""
    data = markdown.encode("utf-8", "backslashreplace")
    if len(data) > _MOST_SUMMARY:
        data = data[:_MOST_SUMMARY] + b"\n\n*The rest is left out: it would be too long.*\n"
    _append(environ.get("GITHUB_STEP_SUMMARY"), data.decode("utf-8", "ignore").rstrip("\n") + "\n\n")


def _append(path: str | None, text: str) -> None:
    if not path:
        return
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {path}, which GitHub reads: {error.strerror}") from error
