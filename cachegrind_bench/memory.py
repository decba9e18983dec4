"""Files that are in memory only, so that nobody has to remove them, whatever happens to us."""

from __future__ import annotations

import os

from cachegrind_bench.errors import MeasurementError


def memory_file(data: bytes) -> int:
    """Return the descriptor of a file that has these bytes, to be read from its beginning. MeasurementError if it cannot be."""
    descriptor = -1
    try:
        descriptor = os.memfd_create("cg-bench", os.MFD_CLOEXEC)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise MeasurementError(
            f"{len(data)} bytes cannot be handed on: {error.strerror}",
            hint="see the limits on file size, open files and memory, as with ulimit -a",
        ) from error
    return descriptor
