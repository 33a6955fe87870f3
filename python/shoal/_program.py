"""The program `shoal`, in a process of its own."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from fcntl import ioctl

from ._command import ENDS_WITH_STDIN


def _command_of(*arguments):
    """The words that start the program with this interpreter."""
    return [sys.executable, "-P", "-m", "shoal", *arguments]


def answer(error, *arguments):
    """What the program says as JSON. If it fails, raises an `error` with its reason."""
    command = _command_of(*arguments, "--json")
    # An environment may write bytes to the output that are no text.
    result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if result.returncode < 0:
        raise error(f"shoal {arguments[0]} was killed by {signal.Signals(-result.returncode).name}")
    if result.returncode != 0:
        # An environment may have printed something before the error.
        said = f"\n{result.stderr}".rpartition("\nerror: ")[2].strip()
        raise error(said or f"shoal {arguments[0]} ended with {result.returncode}")
    return json.loads(result.stdout)


def _is_terminal(stream):
    """Whether `stream` is a terminal. In services and embedded interpreters it may be missing, closed or no file."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return bool(stream.isatty())
    return False


def fit(output):
    """Give `output` the size of the window in which standard error is shown, if both are terminals."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        ioctl(output, termios.TIOCSWINSZ, ioctl(sys.stderr.fileno(), termios.TIOCGWINSZ, bytes(8)))


def started(arguments):
    """Start the program `shoal` with `arguments`. Returns its process, and the file to read its output from.

    If this process writes to a terminal, the program gets one too, so that it shows its progress in the same way.
    """
    command = _command_of(*arguments)
    # Its standard input is closed when this process ends, and it ends when its standard input is closed.
    environment = {**os.environ, ENDS_WITH_STDIN: "1"}
    # In a process group of its own, so that Ctrl+C reaches it only once: through `wait`.
    settings = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "env": environment, "process_group": 0}
    # Unbuffered, because a fork could copy the lock of a buffer while it is held.
    settings["bufsize"] = 0
    if not _is_terminal(sys.stderr):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, **settings)
        return process, process.stderr
    ours, theirs = pty.openpty()
    fit(theirs)
    try:
        process = subprocess.Popen(command, stderr=theirs, **settings)
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return process, os.fdopen(ours, "rb", buffering=0)
