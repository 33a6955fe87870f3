#!/usr/bin/env python3
"""What every library does when something goes wrong. Each fault runs in a process of its own, with a watchdog.

    .venv/bin/python faults.py                     # all of them
    .venv-reverb/bin/python faults.py --libraries reverb

A fault that a library cannot have (no priorities, no processes) has no line in the result.
"""

import argparse
import importlib
import os
import signal
import subprocess
import sys

import children
import fault_checks
import libraries
import report

WATCHDOG_S = 60
# For faults of several processes, in each of which TensorFlow or PyTorch may have to be imported first.
WATCHDOG_OF_PROCESSES_S = 180


def adapter_of(library, kind):
    """The library's first adapter of a kind, which is its plain one, or None if it has none."""
    module = importlib.import_module(f"libraries.{library}")
    if kind == "Constructors":
        return getattr(module, "CONSTRUCTORS", None)
    found = libraries.load(library, kind)
    return found[0][1] if found else None


def child(library, fault):
    kind, check = fault_checks.FAULTS[fault]
    adapter = adapter_of(library, kind)
    needs_priorities = kind == "Buffer" and fault != "sample before the first add"
    if adapter is None or (needs_priorities and not adapter.prioritized):
        print("result: ")
    else:
        print(f"result: {check(adapter)}", flush=True)
    # Threads of libraries must not hold up the end.
    sys.stdout.flush()
    os._exit(0)


def outcome(library, fault):
    """Lets a child process make the fault, and returns what happened."""
    command = [sys.executable, __file__, "--child", library, fault]
    limit_s = WATCHDOG_OF_PROCESSES_S if fault_checks.FAULTS[fault][0] == "Shared" else WATCHDOG_S
    process = children.start(command)
    try:
        output, errors = process.communicate(timeout=limit_s)
        hung = False
    except subprocess.TimeoutExpired:
        hung = True
    children.end_group(process)
    if hung:
        output, errors = process.communicate()
    lines = [line for line in output.splitlines() if line.startswith(("result: ", "progress: "))]
    last = lines[-1].partition(": ")[2] if lines else ""
    where = f" ({last})" if last else ""
    if hung:
        return f"**hangs**{where}"
    if process.returncode < 0:
        return f"**dies** of {signal.Signals(-process.returncode).name} {last}".strip()
    if process.returncode:
        return f"raises {errors.strip().splitlines()[-1][:140]}{where}"
    return last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", nargs="*", metavar="FAULT")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    report.add_options(parser, libraries.NAMES)
    arguments = parser.parse_args()
    if arguments.child:
        return child(*arguments.child)
    result = report.start(arguments.libraries)
    records, present = [], []
    for library in arguments.libraries:
        try:
            importlib.import_module(f"libraries.{library}")
            present.append(library)
        except ImportError as error:
            print(f"left out: {library} ({error})", flush=True)
    for fault in arguments.faults or fault_checks.FAULTS:
        for library in present:
            records.append({"fault": fault, "library": library, "outcome": outcome(library, fault)})
            print(f"{fault} | {library} | {records[-1]['outcome']}", flush=True)
    result["records"] = records
    sections = []
    for fault in dict.fromkeys(record["fault"] for record in records):
        lines = [f"- {one['library']}: {one['outcome']}" for one in records if one["fault"] == fault and one["outcome"]]
        sections.append(f"**{fault}**\n\n" + "\n".join(lines))
    report.finish(arguments, "faults", result, "\n\n".join(sections))


if __name__ == "__main__":
    main()
