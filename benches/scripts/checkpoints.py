#!/usr/bin/env python3
"""What checkpoints cost: looks from outside, a thousand times a second, at a run that learns while it writes checkpoints.

    checkpoints.py                                       # DQN on Rally-v0, 200,000 frames: 0.4 GiB
    checkpoints.py --config configs/halfcheetah_sac.toml --fill 300000

The count of updates is read from the shared segment, so the run takes no part in the measurement. Reported are

- updates per second while a checkpoint is being written and while none is,
- the gaps between two updates in both cases,
- the rate at which checkpoints are written, beside that of plain writes to the same disk,
- how long a killed run takes to go on: from `kill -9` of its supervisor to the first update of `resume` (the only figure
  with `--adopt`, of `adopt`).
"""

import argparse
import mmap
import os
import re
import signal
import statistics
import subprocess
import time
from pathlib import Path

import runs

# The count of updates is word 5 of the control region, which follows the header's page. Words are two cache lines apart
# (src/segment/control.rs).
UPDATES_AT = 4096 + 5 * 128


def updates_of(pid):
    """A function that reads the count of updates in the segment of the supervisor `pid`."""
    [name] = [name for name in os.listdir("/dev/shm") if re.match(rf"shoal-\d+-{pid}-", name)]
    with open(f"/dev/shm/{name}", "rb") as file:
        view = mmap.mmap(file.fileno(), UPDATES_AT + 8, prot=mmap.PROT_READ)
    return lambda: int.from_bytes(view[UPDATES_AT : UPDATES_AT + 8], "little")


def look(run, seconds):
    """Seconds, updates and gaps between updates, by whether a checkpoint is being written."""
    updates = updates_of(run.process.pid)
    folder = run.latest / "checkpoints"
    found = {True: [0.0, 0, []], False: [0.0, 0, []]}
    before = updates()
    changed = last = time.monotonic()
    writing = False
    end = last + seconds
    while last < end:
        time.sleep(0.001)
        now, count = time.monotonic(), updates()
        spent = found[writing]
        spent[0] += now - last
        last = now
        if count != before:
            spent[1] += count - before
            spent[2].append((now - changed) / (count - before))
            before, changed = count, now
        writing = folder.is_dir() and any(name.startswith(".partial") for name in os.listdir(folder))
    return found


def plain_rate(folder, size):
    """Bytes per second of writing a file of `size` bytes in the folder, with fsync."""
    path = Path(folder) / "plain"
    chunk = os.urandom(1 << 20)
    began = time.monotonic()
    with open(path, "wb") as file:
        for _ in range(max(1, size >> 20)):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    elapsed = time.monotonic() - began
    path.unlink()
    return size / elapsed


def milliseconds(gaps):
    quantiles = statistics.quantiles(gaps, n=1000)
    return f"p50 {1e3 * quantiles[499]:.2f}, p99 {1e3 * quantiles[989]:.2f}, most {1e3 * max(gaps):.2f} ms"


def go_on(supervisor, command, run, folder):
    """The process that goes on with the run."""
    return subprocess.Popen([str(supervisor), command, str(folder)], env=run.environment, stderr=subprocess.DEVNULL)


def resumed(supervisor, run, folder):
    """Kills the supervisor and resumes the run from its checkpoint on disk."""
    began = time.monotonic()
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    successor = go_on(supervisor, "resume", run, folder)
    try:
        counted, before = None, 0
        while counted is None or before == 0 or counted() == before:
            time.sleep(0.002)
            try:
                counted = counted or updates_of(successor.pid)
            except (ValueError, OSError):
                continue
            before = before or counted()
        print(f"killed, and learning again after {time.monotonic() - began:.2f} s")
    finally:
        successor.send_signal(signal.SIGTERM)
        successor.wait(60)


def adopted(supervisor, run, folder):
    """Kills the supervisor and adopts the run, which is kept in memory. The segment stays the same."""
    counted = updates_of(run.process.pid)
    began = time.monotonic()
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    while "keeps the run in memory" not in (folder / "run.log").read_text():
        time.sleep(0.002)
    kept, before = time.monotonic(), counted()
    successor = go_on(supervisor, "adopt", run, folder)
    try:
        while counted() <= before:
            time.sleep(0.001)
        print(f"killed, and kept after {kept - began:.2f} s; adopted, and learning again after {time.monotonic() - kept:.2f} s")
    finally:
        successor.send_signal(signal.SIGTERM)
        successor.wait(60)


def report(run, latest, found):
    """What checkpoints cost the run, and how fast they are written."""
    log = (latest / "run.log").read_text()
    written = re.findall(r"checkpoint (\S+) is complete: ([\d.]+) (\w+) in ([\d.]+) s", log)
    unit = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    rates = [float(size) * unit[name] / float(seconds) for _, size, name, seconds in written if float(seconds) > 0]
    plain = plain_rate(run.folder.name, int(float(written[-1][1]) * unit[written[-1][2]]))
    for writing, name in ((False, "none under way"), (True, "one under way ")):
        seconds, updates, gaps = found[writing]
        print(f"{name}: {updates / seconds:8.1f} updates/s over {seconds:.1f} s; between two updates {milliseconds(gaps)}")
    share = (found[True][1] / found[True][0]) / (found[False][1] / found[False][0])
    print(f"ratio of updates/s {share:.3f}")
    print(f"checkpoints: {len(written)}, the last {written[-1][1]} {written[-1][2]}; {statistics.median(rates) / 1e6:.0f} MB/s, "
          f"plain writes {plain / 1e6:.0f} MB/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--supervisor", type=Path, default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--config", type=Path, default=runs.ROOT / "configs/rally_dqn.toml")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--fill", type=int, default=200_000, help="rows of the replay, filled before anything is measured")
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between two checkpoints")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--adopt", action="store_true", help="only how a killed run goes on in memory (machine.sentinel=keep)")
    arguments = parser.parse_args()
    print("machine", runs.machine())
    overrides = [
        f"replay.capacity={arguments.fill}", f"replay.min_size={arguments.fill}", f"actor.random_steps={arguments.fill}",
        *runs.WATCHED, f"checkpoint.interval_s={arguments.interval}",
        *(["machine.sentinel=keep"] if arguments.adopt else []), *arguments.set,
    ]
    with runs.Run(arguments.supervisor, arguments.config, overrides) as run:
        run.wait_until("updates", 100)
        latest = run.latest.resolve()
        if arguments.adopt:
            return adopted(arguments.supervisor, run, latest)
        report(run, latest, look(run, arguments.seconds))
        resumed(arguments.supervisor, run, latest)


if __name__ == "__main__":
    main()
