"""Where `cg-bench` and `python -m cachegrind_bench` begin: Ctrl-C is seen to before anything else is imported."""

import signal

# Python would print a traceback, amid an import. There is nothing to tidy up yet: `main` handles it once there may be.
if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from cachegrind_bench.cli.main import main

if __name__ == "__main__":
    main()
