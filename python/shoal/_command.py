"""The command `shoal`: train, resume, adopt, attach, inspect, dashboard, evaluate, doctor, presets, completions. Its processes are forks of this interpreter."""

import contextlib
import fcntl
import os
import select
import shutil
import signal
import sys

from . import _libtorch, _native

#: Variable of a process that was started again because its run asks for the libtorch engine.
WITH_LIBTORCH = "SHOAL_WITH_LIBTORCH"
ENDS_WITH_STDIN = "SHOAL_ENDS_WITH_STDIN"
OTHERWISE = "; otherwise set network.engine and learner.device to `cpu`"


def main():
    given = dict(os.environ)
    # A file of the run could else get the number of a closed standard stream, and be written to as if it were that.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, value in _native.default_variables():
        os.environ.setdefault(name, value)
    # Python's own handler would only note Ctrl+C until Rust returns.
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.environ.pop(ENDS_WITH_STDIN, None):
        end_with_input()
    if sys.stdout is not None:
        # Processes of a run end without flushing Python's buffers.
        sys.stdout.reconfigure(line_buffering=True)
    # Removed, so that programs that this run starts ask for the engine themselves.
    with_libtorch = os.environ.pop(WITH_LIBTORCH, None)
    native = _native_with_libtorch() if with_libtorch else _native
    if threads := _other_threads():
        sys.exit(
            f"error: a debugger or sitecustomize has started threads in this interpreter ({', '.join(threads)}), so it "
            "cannot fork a run: start it without the debugger, or have that leave other processes alone "
            '("subProcess": false in launch.json; in PyCharm, "Attach to subprocess automatically while debugging" off)'
        )
    settle(_typed(), native)
    code = native.run_program(["shoal", *sys.argv[1:]])
    if code is not None:
        sys.exit(code)
    if with_libtorch:
        # It would start itself again for ever.
        sys.exit(f"error: {native.__file__} was built without the libtorch engine: install the package anew{OTHERWISE}")
    # Nothing has been done yet: this process starts itself again, with the build that has the engine.
    try:
        _libtorch.check()
    except ImportError as error:
        sys.exit(f"error: {error}{OTHERWISE}")
    os.execve(sys.executable, sys.orig_argv, {**given, WITH_LIBTORCH: "1"})


def settle(typed, native=_native):
    """Tell the native part which interpreter this is; `typed` is what starts the command `shoal`."""
    abi = f"{sys.version_info[0]}.{sys.version_info[1]}{sys.abiflags}"
    native.settle(sys.executable, sys.base_prefix, abi, typed)


def _other_threads():
    """Names of this interpreter's threads but the first: Python's own where it has one, the kernel's otherwise."""
    threading = sys.modules.get("threading")
    known = {thread.native_id: thread.name for thread in threading.enumerate()} if threading else {}
    # The process id as /proc has it, which may be that of another PID namespace.
    first, names = os.readlink("/proc/self"), []
    for task in set(os.listdir("/proc/self/task")) - {first}:
        # A thread that has ended meanwhile does not count.
        gone = contextlib.suppress(FileNotFoundError, ProcessLookupError)
        with gone, open(f"/proc/self/task/{task}/comm", errors="replace") as file:
            names.append(known.get(int(task)) or file.read().strip())
    return sorted(names)


def _native_with_libtorch():
    try:
        return _libtorch.load()
    except ImportError as error:
        sys.exit(f"error: {error}{OTHERWISE}")


def end_with_input():
    """Have this process asked to end, as by Ctrl+C, once no process holds the other end of its standard input.

    The kernel sends the signal, so no thread has to wait for it.
    """
    # The process that started this one may ignore or block the signal, and this one inherits that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETSIG, signal.SIGINT)
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(0, 0)
    # The other end may have been closed before.
    if any(events & select.POLLHUP for _, events in poll.poll(0)):
        sys.exit(130)


def _typed():
    """What people type for this program: its name if the shell finds it by that, else how this process was started."""
    program = sys.argv[0]
    if os.path.basename(program) == "__main__.py":
        return f"{sys.orig_argv[0]} -m shoal"
    found = shutil.which("shoal")
    return "shoal" if found and os.path.exists(program) and os.path.samefile(found, program) else program
