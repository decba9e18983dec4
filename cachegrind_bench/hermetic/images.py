"""Which programs a supervised run consists of: processes by their forks, images by their execs.

Hears of every fork and exec while its caller waits, so that what it sees in /proc is settled. Runs inside the launcher:
only the standard library, and little of it.
"""

from __future__ import annotations

import os

from cachegrind_bench.hermetic import process_memory
from cachegrind_bench.hermetic.execution import Execution, Image


class Process:
    """What is known of one process id; `drawn`, `ticks` and `asked` count its random draws, and what it asks of clock and machine.

    `ticks` goes on from that of the parent, `born`, as there is one time for both; `forked_at` is what its next child
    goes on from. `ended` is when it started, once it was about to end: its number may come again. Its clock has jumped by
    `jumped_ns`.
    """

    def __init__(self, stream: bytes, image: Image, born: int) -> None:
        self.stream, self.image = stream, image
        self.ticks = self.born = self.forked_at = born
        self.drawn = self.asked = self.forks = self.jumped_ns = 0
        self.ended = ""
        self.pending: list[str] | None = None


class ProcessTable:
    """All processes of one run, from `root` on; without the name of Valgrind's image, its `tool`, it is native.

    With `forks_alike` each child has the random bytes of a first child, so that they do not depend on its siblings.
    """

    def __init__(self, root: int, execution: Execution) -> None:
        self.images: list[Image] = []
        self._root, self._execution = root, execution
        self._aside = 0
        self._processes: dict[int, Process] = {}
        self._meet(root)

    def of_thread(self, thread: int) -> Process:
        """Return what is known of the process that a thread belongs to."""
        return self._meet(process_memory.group_of(thread))

    def _meet(self, pid: int) -> Process:
        """Return what is known of this process; at its first call, find out whose child it is."""
        known = self._processes.get(pid)
        if known is not None and (not known.ended or known.ended == process_memory.started(pid)):
            return known
        if known is not None:
            self._settle(pid, known)
        parent = 0 if pid == self._root else process_memory.parent_of(pid)
        origin = self._processes.get(parent)
        if origin is None:
            stream, path, argv, born = self._execution.seed, "", [], 0
            if pid != self._root:  # its parent has ended already
                stream += b"/orphan"
        else:
            # The how manieth child it is makes its random bytes its own, and the same in every run.
            number = 0 if self._execution.forks_alike else origin.forks
            stream, path, argv = origin.stream + b"/%d" % number, origin.image.path, origin.image.argv
            born = 0 if self._execution.forks_alike else origin.forked_at
        image = Image(pid, path, argv, parent, forked=pid != self._root)
        self.images.append(image)
        process = Process(stream, image, born)
        if origin is not None and not self._execution.forks_alike:
            process.jumped_ns = origin.jumped_ns
        self._processes[pid] = process
        return process

    def fork(self, thread: int) -> Process:
        """Count a fork of the process that is returned; first meet the earlier children, while it is still known which is which."""
        process = self._meet_family(process_memory.group_of(thread))
        process.forks += 1
        process.forked_at = process.ticks
        process.image.forks += 1
        return process

    def start_thread(self, thread: int) -> None:
        """Count a thread: to Callgrind its `clone` looks like that of a fork."""
        self._meet(process_memory.group_of(thread)).image.threads += 1

    def end(self, thread: int) -> None:
        """Meet the children of a process about to end: afterwards they have no parent, and could not be distinguished."""
        pid = process_memory.group_of(thread)
        self._meet_family(pid).ended = process_memory.started(pid)

    def _meet_family(self, pid: int) -> Process:
        process = self._meet(pid)
        for child in process_memory.children_of(pid):
            self._meet(child)
        return process

    def execute(self, thread: int, path_address: int, argv_address: int) -> None:
        """Note that a process is about to execute another program (which may fail)."""
        pid = process_memory.group_of(thread)
        process = self._meet(pid)
        if self._execution.tool is None:
            # Native: nothing says whether this exec will succeed (a search along PATH tries many): the last one counts.
            command = process_memory.strings(thread, argv_address)
            command[:1] = [os.fsdecode(process_memory.peek_string(thread, path_address))]
            self._note(process, command)
            return
        if process_memory.executing(thread) == self._execution.tool:
            # Valgrind executes its launcher with its own options and then the program and its arguments.
            process.pending = process_memory.program_of(process_memory.strings(thread, argv_address))
            self._set_aside(pid, process.image)
        elif process.pending is not None:  # the launcher executes the tool: the exec before it succeeded
            self._replace(process, pid, process.pending)
            image = os.path.basename(os.fsdecode(process_memory.peek_string(thread, path_address)))
            process.image.foreign = (
                image != self._execution.tool
            )  # that of 32-bit programs, whose calls pass the filter
        else:
            if not process.image.argv:
                self._note(process, process_memory.program_of(process_memory.strings(thread, argv_address)))
            process.drawn = 0  # as after any exec: the launcher's libc has drawn too

    def _note(self, process: Process, command: list[str]) -> None:
        """Note an exec: the first of the whole run surely succeeds, another one may."""
        if process.image.argv:
            process.pending = command
        else:
            process.image.argv = command
            process.image.path = process_memory.text_of(command)

    def _set_aside(self, pid: int, image: Image) -> None:
        """Rename this image's out files, which the next image of the process, numbering anew, would overwrite."""
        number = next(index for index, known in enumerate(self.images) if known is image)
        for name in os.listdir(self._execution.out):
            if name == f"out.{pid}" or name.startswith(f"out.{pid}."):
                os.rename(f"{self._execution.out}/{name}", f"{self._execution.out}/image{number}.{self._aside}.{name}")
        self._aside += 1

    def finish(self) -> None:
        """Bring `images` up to date when all processes have ended."""
        for pid, process in self._processes.items():
            self._settle(pid, process)

    def _settle(self, pid: int, process: Process) -> None:
        """Take the last exec of a native process that has ended for one that succeeded: nothing says otherwise."""
        if self._execution.tool is None and process.pending is not None:
            self._replace(process, pid, process.pending)

    def _replace(self, process: Process, pid: int, command: list[str]) -> None:
        """Note that an exec has succeeded: a new image, whose random stream begins anew."""
        process.image.replaced = True
        process.image = Image(pid, process_memory.text_of(command), command, process.image.parent, forked=False)
        self.images.append(process.image)
        process.pending = None
        process.drawn = 0
