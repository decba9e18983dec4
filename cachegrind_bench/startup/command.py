"""How Python is called for it to list no folder of its import path but the standard library's."""

from __future__ import annotations

from pathlib import Path

from cachegrind_bench.startup import sites, unlisted

# -P, and not -m: the working directory may hold modules of any name, and must not even be listed, as CPython 3.13 imports
# what shows tracebacks before it begins with -c. And -S: `begin` does what is left out by it.
OPTIONS = ("-P", "-S")
_ROOT = str(Path(__file__).resolve().parent.parent.parent)
# To be followed by other code. The last argument is PYTHONPATH, which Python itself must not see: it would import along it.
# What keeps it from listing is loaded by its path, through what is there when it has started.
CODE = f"""
import sys
from _frozen_importlib import module_from_spec
from _frozen_importlib_external import spec_from_file_location
spec = spec_from_file_location({unlisted.__name__!r}, {unlisted.__file__!r})
sys.modules[spec.name] = unlisted = module_from_spec(spec)
spec.loader.exec_module(unlisted)
unlisted.import_without_listing()
from os.path import abspath
path = sys.argv.pop()
sys.path[:0] = [abspath(folder) for folder in path.split(":") if path]
sys.path.append({_ROOT!r})
from {sites.__name__} import begin
sys.path.pop()
begin(path)
sys.path.append({_ROOT!r})
"""
