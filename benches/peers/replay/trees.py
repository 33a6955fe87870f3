#!/usr/bin/env python3
"""Sum trees alone: nanoseconds per priority that is set, and per target that is found.

A library without a public tree takes part as a replay whose rows are one float. It does more per element (a tree of minima,
weights, copies of rows), as its label says.
"""

import argparse

import numpy

import report
import rows
import turns

NAMES = ["shoal", "cpprb", "tianshou", "torchrl", "flashbax", "rllib"]


def of_capacity(capacity, batch_sizes, adapters, arguments):
    trees, records = {}, []
    for name, adapter in adapters.items():
        trees[name] = adapter(capacity)
        print(f"capacity {capacity}: {name} is filled", flush=True)
    for batch_size in batch_sizes:
        random = numpy.random.default_rng(batch_size)
        # Enough leaves that not all are in the cache. There is one more array of priorities than of indices, so that a leaf
        # does not get the priority that it already has.
        count = max(16, min(1024, 131_072 // batch_size))
        indices = [random.integers(0, capacity, batch_size) for _ in range(count)]
        priorities = rows.random_priorities(count + 1, batch_size)
        for operation in ("set", "find"):
            tasks = {}
            for name, tree in trees.items():
                if operation == "set":
                    given = [tree.native(indices[turn % count], priorities[turn % (count + 1)]) for turn in range(2 * count)]
                    tasks[name] = turns.Calls(tree.update, given)
                else:
                    tasks[name] = turns.Calls(tree.find, [tree.native_targets(random.random(batch_size)) for _ in range(count)])
            found, failed = turns.measure(tasks, arguments.rounds, arguments.block_s, arguments.warm_s)
            for name, why in failed.items():
                print(f"{name}, {operation} {batch_size}: {why}", flush=True)
            for name, figures in found.items():
                records.append({
                    "library": trees[name].label, "operation": f"{operation} {batch_size} of {capacity:,}", **figures,
                    "processor_ns_per_element": 1e3 * figures["processor_us"] / batch_size,
                    "wall_ns_per_element": 1e3 * figures["wall_us"] / batch_size,
                })
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capacities", type=int, nargs="*", default=[1 << 14, 1 << 20])
    parser.add_argument("--batches", type=int, nargs="*", default=[32, 256, 4096])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--block-s", type=float, default=0.02)
    parser.add_argument("--warm-s", type=float, default=0.3, help="of calls that are not counted, before each measurement")
    report.add_options(parser, NAMES)
    arguments = parser.parse_args()
    result = report.start(arguments.libraries)
    adapters, result["left_out"] = report.load(arguments.libraries, "Tree")
    records = []
    for capacity in arguments.capacities:
        records += of_capacity(capacity, arguments.batches, adapters, arguments)
    result["records"] = records

    def value(record):
        return record["processor_ns_per_element"]

    ratios = report.beside_before("An element", records, "library", "operation", value)
    table = report.table_of(records, "library", "operation", lambda record: report.figure(value(record)))
    report.finish(
        arguments, "trees", result, f"{ratios}Nanoseconds of processor time per element, medians of the rounds.\n\n{table}",
        lambda path: report.bars(records, "library", "operation", value, "ns per element", path),
    )


if __name__ == "__main__":
    main()
