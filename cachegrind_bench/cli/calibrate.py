"""`cg-bench calibrate`: find out what events take in time on this machine."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command, options_group
from cachegrind_bench.cli.options import caches_options, measure_request, valgrind_option
from cachegrind_bench.log import LOG

_EPILOG = """\b
Some eighty small loops in C are compiled with cc, or $CC, timed here on one CPU (the least of nine runs in each of three
starts), and counted under Valgrind: some fifteen seconds in all. What an instruction, a mispredicted branch, an L1 miss and an
LL miss take is fitted to that, and kept in .cg-bench/models/NAME.json.

A model gives absolute times. How a time changes, the estimate of 'run --estimate' says as well without a model.

\b
Exit code: 0; 2 without a compiler or SciPy (in a checkout of cg-bench: pip install '.[calibrate]'); 4 if the machine is too busy.

\b
Examples:
  cg-bench calibrate laptop
  cg-bench run --estimate -o result.json -- ./prog
  cg-bench show result.json --time-model laptop
"""


@click.command("calibrate", cls=Command, epilog=_EPILOG)
@options_group(caches_options, valgrind_option, heading="The simulated machine")
@click.argument("name")
def command(*, name: str, **options: Any) -> None:
    """Find out what events take in time on this machine, and keep it as the model NAME, by which 'show' and 'diff' tell times."""
    from cachegrind_bench.render import table
    from cachegrind_bench.render.progress import Display
    from cachegrind_bench.render.time_models import report
    from cachegrind_bench.store import time_models
    from cachegrind_bench.store.baselines import Baselines
    from cachegrind_bench.usecases.calibration import calibrated

    request = measure_request({**options, **dict.fromkeys(("timeout", "pin_clock")), "model": "ir"}, command=())
    path = time_models.prepare(Baselines.find(request.cwd).store, name)
    with Display(sys.stderr) as display:
        model = calibrated(request, name, display.phase)
    time_models.write(path, model)
    output.write(table.render(report(model), width=output.terminal_width()))
    LOG.info(f"saved as {os.path.relpath(path, request.cwd)}")
