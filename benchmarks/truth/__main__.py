"""How well counts predict time: the tables of docs/truth.md, and the intervals that a comparison shows.

    python -m benchmarks.truth [--points FILE] [--seed N]
    python -m benchmarks.truth measure [--points FILE] [--work FOLDER] [--python PATH]... [--kind KIND]...
    python -m benchmarks.truth plot --to FILE.png [--points FILE]

Without a word it makes the tables of a file of points: programs and loops that were counted by Callgrind and timed natively.
`points.csv` has 527 of 89 families, of one server, and `second.csv` those that `measure` made on another machine. `measure` goes on
where it was ended, and leaves out what cannot be built here; pyperformance's programs run under each Python that is given.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks.truth import measure, plots, tables
from benchmarks.truth.points import POINTS, points


def main() -> None:
    """Print the tables, measure, or draw."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.truth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("do", nargs="?", choices=("tables", "measure", "plot"), default="tables")
    parser.add_argument("--points", type=Path, help="the file to read, or to add to")
    parser.add_argument("--seed", type=int, default=1, help="of the changes that the intervals are made of")
    parser.add_argument("--work", type=Path, default=Path("truth-work"), help="where programs are built")
    parser.add_argument(
        "--python", action="append", default=[], help="measure pyperformance's programs under this Python"
    )
    parser.add_argument("--kind", action="append", default=[], choices=("sweep", "micro", "real", "python"))
    parser.add_argument("--title", default="", help="of the plot")
    parser.add_argument("--to", type=Path, help="the plot's file")
    options = parser.parse_args()
    if options.do == "measure":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        measure.measure(options.points or Path("points.csv"), options.work, options.python, options.kind)
        return
    everything = points(options.points or POINTS)
    if options.do == "plot":
        if options.to is None:
            parser.error("a plot needs --to FILE.png")
        plots.draw(everything, options.to, options.title)
        return
    found = tables.models(everything), tables.ranges(everything, options.seed), tables.stated(everything, options.seed)
    print("\n\n".join("\n".join(lines) for lines in found))


if __name__ == "__main__":
    main()
