"""Shows on pytest's own streams what was said in the measured process, whatever these can take: for -s."""

from __future__ import annotations

from typing import Any


def show(stream: Any, text: str) -> None:
    """Write a text; what the stream's encoding does not have is escaped, as pytest does it."""
    try:
        stream.write(text)
    except UnicodeEncodeError as error:
        stream.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))


def show_bytes(stream: Any, data: bytes) -> None:
    """Write bytes as they are, or as text where a stream takes only that, as those of notebooks."""
    raw = getattr(stream, "buffer", None)
    if raw is None:
        show(stream, data.decode("utf-8", "backslashreplace"))
    else:
        raw.write(data)
