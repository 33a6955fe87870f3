#!/usr/bin/env python3
"""Several processes on one replay: rows added and drawn per second, and how much a busy sampler slows the writers.

Every cell (a library, a number of writers, a number of samplers) is a process of its own with a watchdog, so that neither
a hang nor a crash of one reaches another; cells take turns in random order. Writers add batches of 64, samplers draw 256
and set the 256 priorities where there are any. Each figure is a median over the repetitions.

With fewer cores than processes the samplers also take processor time from the writers. Figures "per processor-second" are
free of that, and of waiting for locks; figures "per second" are what users see.
"""

import argparse
import ctypes
import json
import multiprocessing
import random
import statistics
import subprocess
import sys
import threading
import time

import children
import report
import rows

BATCH_SIZE, ADD_ROWS = 256, 64
NAMES = ["shoal", "cpprb", "torchrl", "reverb", "numpy_loop"]
WATCHDOG_S = 120


class Result(ctypes.Structure):
    """What a worker leaves in shared memory."""

    _fields_ = [("ready", ctypes.c_bool), ("rows", ctypes.c_double), ("wall_s", ctypes.c_double), ("processor_s", ctypes.c_double)]


def work(kind, number, buffer, schema, go, stop, results):
    """A writer or a sampler. Calls until told to stop, then leaves the rows that it moved and its wall and processor seconds."""
    if kind == "writer":
        given = [buffer.native(batch) for batch in rows.batches(rows.random_rows(schema, 2048, seed=number), ADD_ROWS, 32)]

        def call(turn):
            buffer.add(given[turn % 32])
    else:
        priorities = [buffer.native_priorities(some) for some in rows.random_priorities(31, BATCH_SIZE, seed=number)]

        def call(turn):
            _, drawn, _ = buffer.sample()
            if buffer.prioritized:
                buffer.update(drawn, priorities[turn % 31])

    # A sampler in the parent counts its own thread alone; a process also counts the threads of its library.
    clock = time.process_time if threading.current_thread() is threading.main_thread() else time.thread_time
    call(0)
    results[number].ready = True
    while not go.value:
        time.sleep(0.001)
    calls = 0
    wall_before, processor_before = time.perf_counter(), clock()
    while not stop.value:
        call(calls)
        calls += 1
    results[number].rows = calls * (ADD_ROWS if kind == "writer" else BATCH_SIZE)
    results[number].wall_s = time.perf_counter() - wall_before
    results[number].processor_s = clock() - processor_before


def cell(adapter, schema, capacity, writers, samplers, seconds):
    """The figures of one cell, measured in this process and its children."""
    buffer = adapter(schema, capacity, BATCH_SIZE)
    given = [buffer.native(batch) for batch in rows.batches(rows.random_rows(schema, 8192), buffer.fill_rows, 4)]
    for turn in range(-(-capacity // buffer.fill_rows)):
        buffer.add(given[turn % 4])
    context = multiprocessing.get_context(buffer.start_method)
    results = context.RawArray(Result, writers + samplers)
    go, stop = context.RawValue("b", 0), context.RawValue("b", 0)
    workers = []
    for number in range(writers + samplers):
        kind = "writer" if number < writers else "sampler"
        arguments = (kind, number, buffer, schema, go, stop, results)
        if kind == "sampler" and buffer.samples_in_parent:
            workers.append(threading.Thread(target=work, args=arguments, daemon=True))
        else:
            workers.append(context.Process(target=work, args=arguments, daemon=True))
    for worker in workers:
        worker.start()
    while not all(result.ready for result in results):
        time.sleep(0.01)
        for worker in workers:
            if getattr(worker, "exitcode", None):
                raise RuntimeError(f"a worker ended with {worker.exitcode}")
    go.value = 1
    time.sleep(seconds)
    stop.value = 1
    for worker in workers:
        worker.join()
    buffer.close()

    def rates(some):
        some = [result for result in some if result.wall_s]
        per_processor_s = [result.rows / result.processor_s for result in some if result.processor_s]
        return sum(result.rows / result.wall_s for result in some), statistics.mean(per_processor_s) if per_processor_s else None

    (added, added_cpu), (drawn, drawn_cpu) = rates(results[:writers]), rates(results[writers:])
    return {"added_per_s": added, "added_per_processor_s": added_cpu, "drawn_per_s": drawn, "drawn_per_processor_s": drawn_cpu}


def run_cell(name, writers, samplers, arguments):
    """Measures a cell in a child process with a watchdog. A failure is reported as the result."""
    command = [
        sys.executable, __file__, "--cell", name, str(writers), str(samplers), "--seconds", str(arguments.seconds),
        "--capacity", str(arguments.capacity), "--rows", arguments.rows, "--libraries", *arguments.libraries,
    ]
    child = children.start(command)
    try:
        output, errors = child.communicate(timeout=WATCHDOG_S)
    except subprocess.TimeoutExpired:
        return {"failed": f"no end after {WATCHDOG_S} s"}
    finally:
        children.end_group(child)
    if child.returncode:
        return {"failed": errors.strip().splitlines()[-1] if errors.strip() else f"exit {child.returncode}"}
    return json.loads(output.splitlines()[-1])


def summary(name, label, writers, samplers, repetitions):
    record = {"name": name, "library": label, "writers": writers, "samplers": samplers, "cell": f"{writers} w, {samplers} s"}
    good = [one for one in repetitions if "failed" not in one]
    record["failed"] = [one["failed"] for one in repetitions if "failed" in one]
    for key in ("added_per_s", "added_per_processor_s", "drawn_per_s", "drawn_per_processor_s"):
        values = [one[key] for one in good if one[key]]
        record[key] = statistics.median(values) if values else None
    return record


def slowdowns(records):
    """Adds to the records the writers' rate beside samplers as a share of their rate without samplers."""
    alone = {(one["name"], one["writers"]): one for one in records if not one["samplers"]}
    for one in records:
        reference = alone.get((one["name"], one["writers"]))
        if one["samplers"] and reference and one["added_per_s"] and reference["added_per_s"]:
            one["share_of_alone"] = one["added_per_s"] / reference["added_per_s"]
            one["share_of_alone_processor"] = one["added_per_processor_s"] / reference["added_per_processor_s"]


def cell_text(record, key):
    if record["failed"] and record[key] is None:
        return f"failed: {record['failed'][0][:60]}"
    return report.figure(record[key] / 1e3) if record[key] else ""


def share_text(record):
    if "share_of_alone" not in record:
        return ""
    return f"{record['share_of_alone']:.2f} ({record['share_of_alone_processor']:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", choices=list(rows.SCHEMAS), default="half_cheetah")
    parser.add_argument("--capacity", type=int, default=1 << 16)
    parser.add_argument("--writers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--samplers", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--seconds", type=float, default=2.0, help="per cell")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--cell", nargs=3, metavar=("NAME", "WRITERS", "SAMPLERS"), help=argparse.SUPPRESS)
    report.add_options(parser, NAMES)
    arguments = parser.parse_args()
    adapters, left_out = report.load(arguments.libraries, "Shared")
    if arguments.cell:
        name, writers, samplers = arguments.cell
        figures = cell(adapters[name], rows.SCHEMAS[arguments.rows], arguments.capacity, int(writers), int(samplers), arguments.seconds)
        return print(json.dumps(figures))
    result = report.start(arguments.libraries) | {"rows": arguments.rows, "capacity": arguments.capacity, "left_out": left_out}
    cells = [
        (name, writers, samplers)
        for name, adapter in adapters.items() for writers in arguments.writers for samplers in arguments.samplers
        if samplers <= adapter.most_samplers
    ]
    found = {this: [] for this in cells}
    for repetition in range(arguments.repetitions):
        for this in random.Random(repetition).sample(cells, len(cells)):
            found[this].append(run_cell(*this, arguments))
            print(*this, found[this][-1], flush=True)
    records = [summary(name, adapters[name].label, writers, samplers, found[name, writers, samplers]) for name, writers, samplers in cells]
    slowdowns(records)
    result["records"] = records

    def table(title, key, of=records):
        return f"{title}\n\n{report.table_of(of, 'library', 'cell', lambda record: cell_text(record, key))}"

    with_samplers = [one for one in records if one["samplers"]]
    adding = "Adding, per processor-second"
    ratios = [report.beside_before(adding, records, "library", "cell", lambda record: record["added_per_processor_s"], True)]
    tables = [
        f"Writers add {ADD_ROWS} rows a call, samplers draw {BATCH_SIZE} and set their priorities; {arguments.seconds} s per cell, "
        f"medians of {arguments.repetitions}, capacity {arguments.capacity:,}. w: writers, s: samplers.",
        table("Thousand rows added per second, all writers together", "added_per_s"),
        table("Thousand rows added per processor-second of a writer", "added_per_processor_s"),
    ]
    if with_samplers:
        drawing = "Drawing, per processor-second"
        ratios.append(report.beside_before(drawing, with_samplers, "library", "cell", lambda record: record["drawn_per_processor_s"], True))
        tables += [
            table("Thousand rows drawn per second, all samplers together", "drawn_per_s", with_samplers),
            "The writers' rate beside samplers as a share of their rate alone: per second (per processor-second)\n\n"
            + report.table_of(with_samplers, "library", "cell", share_text),
        ]
    report.finish(arguments, "processes", result, "".join(ratios) + "\n\n".join(tables), lambda path: report.bars(
        [one for one in records if one["added_per_s"]], "library", "cell", lambda record: record["added_per_s"], "rows added/s", path))


if __name__ == "__main__":
    main()
