"""The program `shoal`, in a process of its own."""

import json
import signal
import subprocess
import sys


def command_of(*arguments):
    """The words that start the program with this interpreter."""
    return [sys.executable, "-P", "-m", "shoal", *arguments]


def answer(error, *arguments):
    """What the program says as JSON. If it fails, raises an `error` with its reason."""
    command = command_of(*arguments, "--json")
    # An environment may write bytes to the output that are no text.
    result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if result.returncode < 0:
        raise error(f"shoal {arguments[0]} was killed by {signal.Signals(-result.returncode).name}")
    if result.returncode != 0:
        # An environment may have printed something before the error.
        said = f"\n{result.stderr}".rpartition("\nerror: ")[2].strip()
        raise error(said or f"shoal {arguments[0]} ended with {result.returncode}")
    return json.loads(result.stdout)
