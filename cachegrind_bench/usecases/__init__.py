"""What the commands, the pytest plugin and the action do: each takes a request, returns a value, and prints nothing itself."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cachegrind_bench.model.text import plain


class Notices(msgspec.Struct, frozen=True, kw_only=True):
    """Where a use case reports what it did and warns; `quiet` suppresses the reports, never the warnings.

    Names in them are others': what a terminal or the log of a job would obey is escaped.
    """

    write: Callable[[str], None]
    quiet: bool = False

    def note(self, text: str) -> None:
        """Report one line."""
        if not self.quiet:
            self.write(f"cg-bench: {plain(text)}\n")

    def warn(self, text: str) -> None:
        """Write one line of warning."""
        self.write(f"cg-bench: warning: {plain(text)}\n")
