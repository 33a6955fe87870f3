"""The faults of `faults.py`: each takes an adapter, does something wrong, and returns one line that says what happened.

Every number of row n of a replay is n + 1, so a drawn row tells which row it is and whether it is whole.
"""

import os
import random
import signal
import tempfile
import time
from pathlib import Path

import numpy

import rows

# The slots, and the size of a batch, in faults of one process.
SLOTS = 8
# The size of a batch in faults of several processes, whose replays have more slots.
BATCH_SIZE = 64
# Batches that a library may have fetched ahead.
FETCHED_AHEAD = 70
SCHEMA = rows.HALF_CHEETAH


def progress(text):
    """Says how far the child is. If its watchdog ends it, the last such line is reported."""
    print(f"progress: {text}", flush=True)


def short(error):
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:90] if lines else ''}"


def eight_rows(adapter):
    buffer = adapter(SCHEMA, SLOTS, SLOTS)
    for row in range(SLOTS):
        buffer.add(buffer.native(rows.stamped_rows(SCHEMA, 1, row + 1)))
    return buffer


def set_priority(buffer, row, priority):
    buffer.update(buffer.native_indices(buffer.name_of(row)), buffer.native_priorities(numpy.array([priority], numpy.float32)))


def shares(buffer, batches=500):
    """The share of each row in all draws, without the first batches, which may have been fetched ahead."""
    drawn = []
    for batch in range(batches + FETCHED_AHEAD):
        fields, _, weights = buffer.sample()
        if weights is not None and not numpy.isfinite(numpy.asarray(weights)).all():
            raise FloatingPointError("importance weights are not finite")
        if batch >= FETCHED_AHEAD:
            drawn.append(numpy.asarray(buffer.array(fields, "reward")).reshape(-1))
    return numpy.bincount(numpy.concatenate(drawn).astype(int), minlength=SLOTS + 1)[1 : SLOTS + 1] / (batches * SLOTS)


def after(buffer):
    """What sampling does after a fault."""
    try:
        found = shares(buffer)
    except Exception as error:
        return f"sampling raises {short(error)}"
    most = int(found.argmax())
    if found.sum() < 0.999:
        return "rows are drawn that were never added"
    return "rows are drawn evenly" if found[most] < 0.25 else f"row {most} is {100 * found[most]:.0f} % of the draws"


def updated(adapter, row, priority):
    buffer = eight_rows(adapter)
    try:
        set_priority(buffer, row, priority)
    except Exception as error:
        return f"refused ({short(error)}); then {after(buffer)}"
    return f"accepted; then {after(buffer)}"


def nan_priority(adapter):
    return updated(adapter, 3, float("nan"))


def index_beyond(adapter):
    return updated(adapter, 100, 1000.0)


def index_negative(adapter):
    return updated(adapter, -1, 1000.0)


def empty_sample(adapter):
    buffer = adapter(SCHEMA, SLOTS, SLOTS)
    try:
        fields, _, _ = buffer.sample()
    except Exception as error:
        return f"refused ({short(error)})"
    return f"gives {len(buffer.array(fields, 'reward'))} rows that nobody added"


def stale_update(adapter):
    """Draws row 3, overwrites all rows, then sets the priority of the row drawn."""
    buffer = eight_rows(adapter)
    drawn = buffer.drawn_row(3)
    for row in range(SLOTS):
        buffer.add(buffer.native(rows.stamped_rows(SCHEMA, 1, row + 1)))
    try:
        buffer.update(drawn, buffer.native_priorities(numpy.full(buffer.size_of(drawn), 1000.0, numpy.float32)))
    except Exception as error:
        return f"refused ({short(error)}); then {after(buffer)}"
    found = after(buffer)
    return "dropped; then rows are drawn evenly" if found == "rows are drawn evenly" else f"lands on rows that are new; then {found}"


def saved_priorities(adapter):
    buffer = eight_rows(adapter)
    set_priority(buffer, 3, 1000.0)
    before = shares(buffer)[3]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "replay.npz")
        try:
            buffer.save(path)
            loaded = buffer.load(path)
            now = shares(loaded)[3]
        except Exception as error:
            return f"cannot: {short(error)}"
    kept = "kept" if abs(now - before) < 0.1 else "lost"
    return f"{kept}: a row that was {100 * before:.0f} % of the draws is {100 * now:.0f} %"


def root_drift(adapter, seconds=12.0, capacity=1 << 14):
    """Sets priorities of six orders of magnitude over and over, then small ones only: does the root still equal the sum?"""
    tree = adapter(capacity)
    if tree.total() is None:
        return "the root is not shown"
    random_numbers = numpy.random.default_rng(1)
    updates = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end and updates < 20_000_000:
        indices = random_numbers.integers(0, capacity, 4096)
        tree.update(tree.native(indices, (10 ** random_numbers.uniform(-3, 3, 4096)).astype(numpy.float32)))
        updates += 4096
    for start in range(0, capacity, 4096):
        tree.update(tree.native(numpy.arange(start, start + 4096), numpy.full(4096, 0.001, numpy.float32)))
    leaves = float(numpy.asarray(tree.leaves(), numpy.float64).sum())
    root = float(tree.total())
    return f"root / sum of leaves - 1 = {root / leaves - 1:.1e} after {updates / 1e6:.1f} M updates"


def started_writers(buffer, context, numbers):
    """Starts writers and waits until each has written once: a spawned process first imports for seconds."""
    writing = context.RawArray("b", len(numbers))
    writers = [
        context.Process(target=write_for_ever, args=(buffer, number, writing, index), daemon=True)
        for index, number in enumerate(numbers)
    ]
    for writer in writers:
        writer.start()
    while not all(writing):
        time.sleep(0.001)
    return writers


def write_for_ever(buffer, number, writing, index):
    stamp = 1 + number
    while True:
        # Small enough for float32, which holds all whole numbers up to 2^24.
        stamp = 1 + (stamp + 2) % (1 << 20)
        buffer.add(buffer.native(rows.stamped_rows(SCHEMA, 64, stamp)))
        writing[index] = 1


def torn(buffer, fields):
    """How many rows of a batch hold different numbers."""
    columns = [buffer.array(fields, name).reshape(BATCH_SIZE, -1) for name in ("observation", "action", "reward", "next_observation")]
    row = numpy.concatenate(columns, axis=1)
    return int((row.min(axis=1) != row.max(axis=1)).sum())


def shared_and_context(adapter, capacity):
    import multiprocessing

    buffer = adapter(SCHEMA, capacity, BATCH_SIZE)
    for _ in range(-(-capacity // 64)):
        buffer.add(buffer.native(rows.stamped_rows(SCHEMA, 64, 1)))
    return buffer, multiprocessing.get_context(buffer.start_method)


def killed_writer(adapter):
    """Kills writers at random moments; after each kill, this process samples, updates and adds."""
    buffer, context = shared_and_context(adapter, 4096)
    kills = 30 if buffer.start_method == "fork" else 3
    for kill in range(1, kills + 1):
        (writer,) = started_writers(buffer, context, [kill])
        time.sleep(random.uniform(0.002, 0.02))
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        progress(f"after kill {kill}, sampling")
        _, drawn, _ = buffer.sample()
        buffer.update(drawn, buffer.native_priorities(numpy.ones(BATCH_SIZE, numpy.float32)))
        progress(f"after kill {kill}, adding")
        buffer.add(buffer.native(rows.stamped_rows(SCHEMA, 64, 1)))
    torn_rows = 0
    for _ in range(4 * 4096 // BATCH_SIZE):
        fields, _, _ = buffer.sample()
        torn_rows += torn(buffer, fields)
    text = f"goes on after {kills} kills, {torn_rows} of {4 * 4096} drawn rows torn"
    leaves = buffer.priorities()
    if leaves is not None and buffer.start_method == "fork":
        text += f", root / sum of leaves - 1 = {float(buffer.total()) / float(leaves.sum()) - 1:.0e}"
    buffer.close()
    return text


def torn_rows(adapter, seconds=5.0):
    """Two writers overwrite a small replay while this process draws."""
    buffer, context = shared_and_context(adapter, 1024)
    writers = started_writers(buffer, context, [1, 2])
    found, drawn, end = 0, 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        fields, _, _ = buffer.sample()
        found += torn(buffer, fields)
        drawn += BATCH_SIZE
        progress(f"{found} of {drawn:,} rows torn, then no answer")
    for writer in writers:
        writer.kill()
        writer.join()
    return f"{found:,} of {drawn:,} drawn rows torn"


def unknown_options(constructors):
    """Whether each constructor refuses an option that it does not have."""
    found = []
    for name, construct in constructors.items():
        try:
            construct(no_such_option=True)
            found.append(f"`{name}` takes any")
        except Exception as error:
            found.append(f"`{name}` refuses ({type(error).__name__})")
    return "; ".join(found)


FAULTS = {
    "NaN as a priority": ("Buffer", nan_priority),
    "index 100 of 8 slots": ("Buffer", index_beyond),
    "index -1": ("Buffer", index_negative),
    "sample before the first add": ("Buffer", empty_sample),
    "priorities of rows overwritten since": ("Buffer", stale_update),
    "priorities over save and load": ("Buffer", saved_priorities),
    "drift of the root": ("Tree", root_drift),
    "a writer killed by SIGKILL": ("Shared", killed_writer),
    "torn rows, two writers": ("Shared", torn_rows),
    "an option that does not exist": ("Constructors", unknown_options),
}
