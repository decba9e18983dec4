"""What exactly was run: build-ids of an executable, its loader, libc and libraries, and of the interpreter it needs.

Follows what the kernel and the dynamic loader do; knows nothing of Valgrind. Any file gives an answer, never an
exception. The only place that uses pyelftools.
"""

from cachegrind_bench.hermetic.fingerprint.identify import Fingerprint, fingerprint
from cachegrind_bench.hermetic.fingerprint.interpreter import InterpreterIdentity, interpreter_identity, key_fields

__all__ = ["Fingerprint", "InterpreterIdentity", "fingerprint", "interpreter_identity", "key_fields"]
