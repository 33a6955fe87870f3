"""The command `shoal`, whose processes are forks of this interpreter.

Subcommands: train, resume, adopt, attach, inspect, dashboard, evaluate, doctor, presets, completions.
"""

import contextlib
import fcntl
import os
import select
import shlex
import shutil
import signal
import sys

from . import _libtorch, _native

#: Environment variable of a process that has restarted itself because its run needs the libtorch engine.
WITH_LIBTORCH = "SHOAL_WITH_LIBTORCH"
#: Environment variable of a process that ends once its standard input is closed.
ENDS_WITH_STDIN = "SHOAL_ENDS_WITH_STDIN"
OR_USE_CPU = "; otherwise set network.engine and learner.device to `cpu`"


def main():
    given = dict(os.environ)
    # Opens the standard streams that are closed. Otherwise a file of the run could get the number of one of them, and
    # receive what is written to that stream.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, value in _native.default_variables():
        os.environ.setdefault(name, value)
    # Python's own handler would raise KeyboardInterrupt only once the Rust code returns.
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.environ.pop(ENDS_WITH_STDIN, None):
        end_with_input()
    if sys.stdout is not None:
        # Processes of a run end without flushing Python's buffers.
        sys.stdout.reconfigure(line_buffering=True)
    # Removed, so that a program that this run starts decides for itself whether it needs the engine.
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
        # It would restart itself forever.
        problem = f"error: {native.__file__} was built without the libtorch engine: install the package anew"
        sys.exit(problem + OR_USE_CPU)
    # Nothing has been done yet, so this process restarts itself with the build that has the engine.
    try:
        _libtorch.check()
    except ImportError as error:
        sys.exit(f"error: {error}{OR_USE_CPU}")
    os.execve(sys.executable, sys.orig_argv, {**given, WITH_LIBTORCH: "1"})


def settle(typed, native=_native):
    """Tell the native part which interpreter this is; `typed` is what a user types to start the command `shoal`."""
    abi = f"{sys.version_info[0]}.{sys.version_info[1]}{sys.abiflags}"
    native.settle(sys.executable, sys.base_prefix, abi, typed)


def _other_threads():
    """Names of all threads of this process but the first: Python's name if there is one, else the kernel's."""
    threading = sys.modules.get("threading")
    known = {thread.native_id: thread.name for thread in threading.enumerate()} if threading else {}
    # From /proc, whose process ids may be those of another PID namespace than `os.getpid()`.
    first = os.readlink("/proc/self")
    names = []
    for task in set(os.listdir("/proc/self/task")) - {first}:
        # A thread that has ended since the folder was listed does not count.
        gone = contextlib.suppress(FileNotFoundError, ProcessLookupError)
        with gone, open(f"/proc/self/task/{task}/comm", errors="replace") as file:
            names.append(known.get(int(task)) or file.read().strip())
    return sorted(names)


def _native_with_libtorch():
    try:
        return _libtorch.load()
    except ImportError as error:
        sys.exit(f"error: {error}{OR_USE_CPU}")


def end_with_input():
    """Have the kernel send this process SIGTERM once no process holds the other end of its standard input.

    No thread has to wait for that. It is not SIGINT, by which a user says that the run is not to go on: whoever started
    this process may have been killed.
    """
    # This process inherits it if its parent ignores or blocks a signal. `Run.stop` sends SIGINT.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {stop})
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(0, 0)
    # If the other end was closed before, the kernel sends no signal.
    if any(events & select.POLLHUP for _, events in poll.poll(0)):
        sys.exit(128 + signal.SIGTERM)


def _typed():
    """What a user types to start this program: `shoal` if the shell finds it so, else how it was started now."""
    program = sys.argv[0]
    if os.path.basename(program) == "__main__.py":
        return f"{shlex.quote(sys.orig_argv[0])} -m shoal"
    found = shutil.which("shoal")
    return "shoal" if found and os.path.exists(program) and os.path.samefile(found, program) else shlex.quote(program)
