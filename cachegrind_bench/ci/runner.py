"""What a step exchanges with GitHub's runner: its log, outputs, the job's summary, and settings for git in the environment.

Format: https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import plain

# GitHub refuses a step's summary of more than 1 MiB as a whole.
_MOST_SUMMARY = 1_000_000
_LONGEST_OUTPUT = 100_000


class Runner(msgspec.Struct, frozen=True, kw_only=True):
    """The runner by the variables of a step, and by `write`, which writes to the step's log."""

    environ: MutableMapping[str, str]
    write: Callable[[str | bytes], None]

    def say(self, text: str) -> None:
        """Write a line to the log in which GitHub sees no command."""
        self.write(f"cg-bench: {harmless(plain(text))}\n")

    @contextmanager
    def unheard(self) -> Generator[None]:
        """Let GitHub take nothing for a command that is written inside: programs and names may contain anything."""
        word = secrets.token_hex(16)
        self.write(f"::stop-commands::{word}\n")
        try:
            yield
        finally:
            self.write(f"::{word}::\n")

    @contextmanager
    def group(self, title: str) -> Generator[None]:
        """Let GitHub fold what is written inside, and take nothing of it for a command."""
        self.write(f"::group::{plain(title)}\n")
        try:
            with self.unheard():
                yield
        finally:
            self.write("::endgroup::\n")

    def set_outputs(self, values: Mapping[str, str]) -> None:
        """Set outputs of the step; outside a job, nothing happens.

        Each value is between delimiters nobody can guess, so none can end early and set another output.
        """
        lines: list[str] = []
        for name, value in values.items():
            delimiter = f"cg-bench-{secrets.token_hex(16)}"
            # One that is not UTF-8 or is endless would make the runner refuse all of them.
            text = value.encode("utf-8", "backslashreplace").decode().replace("\0", "")[:_LONGEST_OUTPUT]
            lines.append(f"{name}<<{delimiter}\n{text}\n{delimiter}\n")
        self._append("GITHUB_OUTPUT", "".join(lines))

    def add_summary(self, markdown: str) -> None:
        """Append to the job's summary; outside a job, nothing happens. What GitHub would refuse as too long is cut."""
        data = markdown.encode("utf-8", "backslashreplace")
        if len(data) > _MOST_SUMMARY:
            data = data[:_MOST_SUMMARY] + b"\n\n*The rest is left out: it would be too long.*\n"
        self._append("GITHUB_STEP_SUMMARY", data.decode("utf-8", "ignore").rstrip("\n") + "\n\n")

    def _append(self, name: str, text: str) -> None:
        """Append to the file that a variable names; one that cannot be written is not tried again."""
        path = self.environ.pop(name, None)
        if not path:
            return
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(f"cannot write {path}, which GitHub reads: {error.strerror}") from error
        self.environ[name] = path


def harmless(text: str) -> str:
    """Return text without what GitHub's runner takes for a command in the middle of a line, the older form of them."""
    return text.replace("##[", "##\u200b[")


def add_setting(environ: MutableMapping[str, str], name: str, value: str) -> None:
    """Add a setting to those that git takes from the environment."""
    known = environ.get("GIT_CONFIG_COUNT", "")
    number = int(known) if re.fullmatch("[0-9]{1,9}", known) else 0
    environ["GIT_CONFIG_COUNT"] = str(number + 1)
    environ[f"GIT_CONFIG_KEY_{number}"] = name
    environ[f"GIT_CONFIG_VALUE_{number}"] = value


def add_token(environ: MutableMapping[str, str], server_url: str, token: str) -> None:
    """Let git fetch and push with this token, at GitHub's address alone.

    What actions/checkout may have written into the clone's configuration is replaced: GitHub refuses two such headers.
    Redirections from there are not followed, as git would send the header along.
    """
    encoded = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    there = f"http.{server_url.rstrip('/')}/"
    header = f"{there}.extraheader"
    add_setting(environ, header, "")  # forgets those before
    add_setting(environ, header, f"AUTHORIZATION: basic {encoded}")
    add_setting(environ, f"{there}.followRedirects", "false")
