"""Timing of several libraries in one process, in turns, so that disturbances of the machine affect all of them alike.

A turn is a block of calls of one library; a round gives every library one turn, in a new random order. The figure of a
library is the median over the rounds. Two clocks are read: wall time, and the processor time of the process (all its
threads), which other users of the machine disturb less. Calls that are not counted come first, because on a virtual machine
the first accesses to a page cost microseconds each, whatever was written to it before.
"""

import random
import resource
import statistics
import time


class Calls:
    """A function and the arguments of its calls, in turn. A block of calls begins where the block before ended."""

    def __init__(self, function, arguments):
        self.function, self.arguments, self.position = function, arguments, 0

    def block(self, calls):
        """Makes `calls` calls. Returns the wall seconds, processor seconds and page faults per call."""
        count = len(self.arguments)
        taken = [self.arguments[(self.position + call) % count] for call in range(calls)]
        self.position = (self.position + calls) % count
        function = self.function
        faults_before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        wall_before, processor_before = time.perf_counter(), time.process_time()
        for argument in taken:
            function(argument)
        wall_s, processor_s = time.perf_counter() - wall_before, time.process_time() - processor_before
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults_before
        return wall_s / calls, processor_s / calls, faults / calls


def calls_per_block(calls, block_s):
    """How many calls fill a block."""
    count = 1
    while count < 100_000:
        wall_s, _, _ = calls.block(count)
        if wall_s * count > block_s / 4:
            return max(2, round(block_s / wall_s))
        count *= 4
    return count


def warm_up(calls, warm_s):
    end = time.perf_counter() + warm_s
    while time.perf_counter() < end:
        calls.block(16)


def measure(tasks, rounds, block_s, warm_s, seed=0):
    """Medians in microseconds per call of `tasks` (name to `Calls`), and the errors of the tasks that failed, by name."""
    order = random.Random(seed)
    counts, found, failed = {}, {}, {}
    for name, calls in tasks.items():
        try:
            calls.block(1)
            warm_up(calls, warm_s)
            counts[name] = calls_per_block(calls, block_s)
            found[name] = []
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    for _ in range(rounds):
        for name in order.sample(list(found), len(found)):
            found[name].append(tasks[name].block(counts[name]))
    result = {}
    for name, blocks in found.items():
        wall, processor = ([1e6 * value for value in column] for column in list(zip(*blocks))[:2])
        result[name] = {
            "wall_us": statistics.median(wall), "wall_us_least": min(wall),
            "processor_us": statistics.median(processor), "processor_us_least": min(processor),
            "page_faults": statistics.median(block[2] for block in blocks), "calls_per_block": counts[name], "rounds": rounds,
        }
    return result, failed
