#!/usr/bin/env python3
"""Whole prioritized replays in one process: microseconds per call through Python, beside two uniform replays.

"add" gives the replay the library's own containers, made beforehand; "from NumPy" gives it NumPy arrays, as environments
return them, if the two differ. A sample has importance weights. The loop adds 4, samples 256 and sets the 256 priorities.
"""

import argparse
import gc

import psutil

import libraries
import report
import rows
import turns

BATCH_SIZE = 256
OPERATIONS = ["add 1", "add 1, from NumPy", "add 64", "add 64, from NumPy", "sample 256", "update 256", "loop"]


def filled(adapters, schema, capacity, some_rows):
    """Every buffer, full and with different priorities, and the memory that each takes."""
    buffers, memory = {}, []
    for name, adapter in adapters.items():
        gc.collect()
        before = psutil.Process().memory_info().rss
        try:
            buffer = adapter(schema, capacity, BATCH_SIZE)
            given = [buffer.native(batch) for batch in rows.batches(some_rows, buffer.fill_rows, 4)]
            for turn in range(-(-capacity // buffer.fill_rows)):
                buffer.add(given[turn % 4])
            priorities = [buffer.native_priorities(some) for some in rows.random_priorities(31, BATCH_SIZE)]
            for turn in range(min(capacity // BATCH_SIZE, 4096)):
                _, drawn, _ = buffer.sample()
                buffer.update(drawn, priorities[turn % 31])
        except Exception as error:
            print(f"{name} could not be filled: {type(error).__name__}: {error}", flush=True)
            continue
        gc.collect()
        megabytes = (psutil.Process().memory_info().rss - before) / 1e6
        print(f"{name} is filled, {megabytes:.0f} MB", flush=True)
        buffers[name] = buffer
        memory.append({"library": adapter.label, "memory_mb": megabytes})
    return buffers, memory


def calls_of(buffer, operation, some_rows):
    """The calls of a buffer for an operation, or None if it lacks the operation.

    They are made just before they are timed: batches drawn earlier would be overwritten by then, and a library that notices
    this has less to do.
    """
    if operation in ("add 1", "add 64"):
        return turns.Calls(buffer.add, [buffer.native(batch) for batch in rows.batches(some_rows, int(operation[4:]), 32)])
    if operation.endswith("from NumPy"):
        return None if buffer.takes_numpy else turns.Calls(buffer.add, rows.batches(some_rows, int(operation.split()[1][:-1]), 32))
    if operation == f"sample {BATCH_SIZE}":
        return turns.Calls(lambda _: buffer.sample(), [None])
    priorities = [buffer.native_priorities(some) for some in rows.random_priorities(31, BATCH_SIZE)]
    if operation == f"update {BATCH_SIZE}":
        if not buffer.prioritized:
            return None
        drawn = [buffer.sample()[1] for _ in range(64)]
        # A buffer that fills the same arrays again has only one batch, whose leaves would all be in the cache.
        if drawn[0] is drawn[1]:
            return None
        # The counts are coprime, so that a leaf does not get the priority that it already has.
        pairs = [(drawn[turn % 64], priorities[turn % 31]) for turn in range(64 * 31)]
        return turns.Calls(lambda pair: buffer.update(*pair), pairs)
    fours = [buffer.native(batch) for batch in rows.batches(some_rows, 4, 32)]

    def loop(turn):
        buffer.add(fours[turn])
        _, drawn, _ = buffer.sample()
        buffer.update(drawn, priorities[turn % 31])

    return turns.Calls(loop, list(range(32)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", choices=list(rows.SCHEMAS), default="half_cheetah")
    parser.add_argument("--capacity", type=int, help="default: 2^20 rows of HalfCheetah, 2^14 of Atari")
    parser.add_argument("--operations", nargs="*", default=OPERATIONS, metavar="OPERATION", help="default: all")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--block-s", type=float, default=0.02)
    parser.add_argument("--warm-s", type=float, default=1.0, help="of calls that are not counted, before each measurement")
    parser.add_argument("--clock", choices=["processor", "wall"], default="processor", help="clock of the table; the JSON file has both")
    report.add_options(parser, libraries.NAMES)
    arguments = parser.parse_args()
    schema = rows.SCHEMAS[arguments.rows]
    capacity = arguments.capacity or (1 << 20 if arguments.rows == "half_cheetah" else 1 << 14)
    result = report.start(arguments.libraries) | {"rows": arguments.rows, "capacity": capacity}
    adapters, result["left_out"] = report.load(arguments.libraries, "Buffer")
    some_rows = rows.random_rows(schema, 8192 if arguments.rows == "half_cheetah" else 1024)
    buffers, result["memory"] = filled(adapters, schema, capacity, some_rows)
    records = []
    for operation in arguments.operations:
        calls = {name: calls_of(buffer, operation, some_rows) for name, buffer in buffers.items()}
        tasks = {name: calls_of_one for name, calls_of_one in calls.items() if calls_of_one}
        found, failed = turns.measure(tasks, arguments.rounds, arguments.block_s, arguments.warm_s)
        for name, why in failed.items():
            print(f"{name}, {operation}: {why}", flush=True)
        records += [{"library": buffers[name].label, "operation": operation, **figures} for name, figures in found.items()]
        figures = ", ".join(f"{name} {report.figure(one[arguments.clock + '_us'])}" for name, one in found.items())
        print(f"{operation}: {figures}", flush=True)
    result["records"] = records

    def value(record):
        return record[f"{arguments.clock}_us"]

    table = report.table_of(records, "library", "operation", lambda record: report.figure(value(record)))
    title = (
        f"Microseconds per call ({arguments.clock}), rows of {arguments.rows}, capacity {capacity:,}, "
        f"medians of {arguments.rounds} rounds."
    )
    memory = report.runs.table([
        {"library": one["library"], "memory (MB)": report.figure(one["memory_mb"])} for one in result["memory"]
    ])
    ratios = report.beside_before("A call", records, "library", "operation", value)
    report.finish(
        arguments, f"buffers_{arguments.rows}", result, f"{ratios}{title}\n\n{table}\n\n{memory}",
        lambda path: report.bars(records, "library", "operation", value, "µs per call", path),
    )
    for buffer in buffers.values():
        buffer.close()


if __name__ == "__main__":
    main()
