"""How Python is called for it to list no folder of its import path."""

from __future__ import annotations

from pathlib import Path

from cachegrind_bench.startup import sites, unlisted

# -P, and not -m: the working directory may hold modules of any name, and must not even be listed, as CPython 3.13 imports
# what shows tracebacks before it begins with -c. And -S: `begin` does what is left out by it.
OPTIONS = ("-P", "-S")
_ROOT = str(Path(__file__).resolve().parent.parent.parent)
# To be followed by other code; the last argument is PYTHONPATH, which Python itself must not see: it would import along it.
# What keeps it from listing is loaded by its path. What is found first is put right by who imports then.
CODE = f"""
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location({unlisted.__name__!r}, {unlisted.__file__!r})
sys.modules[spec.name] = unlisted = module_from_spec(spec)
spec.loader.exec_module(unlisted)
unlisted.import_without_listing()
sys.path.append({_ROOT!r})
from {sites.__name__} import begin
sys.path.pop()
begin(sys.argv.pop())
sys.path.append({_ROOT!r})
"""
