"""Makes the embedded interpreter act as the one that the run chose, with its packages, its name and its prefix."""

import contextlib
import faulthandler
import io
import os
import signal
import site
import sys
import sysconfig
import threading

try:
    import ctypes
except ImportError:
    # A Python that was compiled without libffi.
    ctypes = None

# The number of this request in `sys/prctl.h`.
PR_SET_PDEATHSIG = 1


def settle(executable, prefix, package_folders, stack_descriptor):
    """Runs once, before any import from outside the standard library."""
    # These variables are for this interpreter alone: programs that an environment starts must not inherit them.
    for name in ("PYTHONHOME", "SHOAL_PYTHON"):
        os.environ.pop(name, None)
    sys.executable = executable
    sys.prefix = sys.exec_prefix = prefix
    sys.path[:] = [folder for folder in sys.path if is_of_the_interpreter(folder)]
    for folder in package_folders:
        # Where packages are installed, files that end in .pth extend the path. In other folders, such as that of a package
        # that is being developed, such files may be weights of PyTorch.
        if os.path.basename(folder) in ("site-packages", "dist-packages"):
            site.addsitedir(folder)
        elif folder not in sys.path:
            sys.path.append(folder)
    if stack_descriptor < 0:
        faulthandler.enable()
    else:
        # The supervisor handles it. It is not ignored, because a program that an environment starts would inherit that. What an
        # environment forks inherits this handler, so Ctrl+C in a terminal does not end it before its environment is closed.
        signal.signal(signal.SIGINT, leave_to_the_supervisor)
        signal.siginterrupt(signal.SIGINT, False)
        # Signal handlers write the stack to the descriptor, so that hangs and crashes in native code are reported as well.
        faulthandler.enable(file=stack_descriptor, all_threads=False)
        faulthandler.register(signal.SIGUSR1, file=stack_descriptor, all_threads=False, chain=False)
        # Training goes on without an audience: the terminal or the pipe may be gone, or the disk full.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.write, stream.flush = passing_over_failures(stream.write), passing_over_failures(stream.flush)
    end_forks_with_this_process()


def leave_to_the_supervisor(number, frame):
    """Does nothing."""


def passing_over_failures(method):
    """`method` of a stream, which does nothing where the system refuses it."""

    def call(*arguments):
        with contextlib.suppress(OSError):
            return method(*arguments)

    return call


def end_forks_with_this_process():
    """Has the kernel kill what an environment forks as soon as this process has ended.

    This process leaves without what `multiprocessing` does at the end of a program, or is killed. What it has forked would
    go on with the run's shared memory, locks and output.
    """
    if ctypes is None:
        return
    process, thread = os.getpid(), threading.get_ident()
    prctl = ctypes.CDLL(None).prctl

    def in_child():
        # To the kernel the parent is the thread that forks, and another one may end before this process.
        if os.getppid() == process and threading.get_ident() == thread:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != process:
                # It has ended before it was asked about.
                os._exit(1)

    os.register_at_fork(after_in_child=in_child)


def is_of_the_interpreter(folder):
    """Whether a folder holds the standard library or is named by PYTHONPATH. Other folders hold packages of another Python."""
    standard = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    archive = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    # In the form in which `site` writes them into `sys.path`: absolute, and without a slash at the end.
    named = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return folder in standard or folder in named or os.path.basename(folder) in ("lib-dynload", archive)
