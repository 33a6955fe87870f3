#!/usr/bin/env python3
"""What it costs a run to be looked at: one that learns, in turns without and with pages that show it.

    cargo build --release && python3 benches/scripts/dashboard.py

Pages are connections that take every message and draw nothing: a browser may be on another machine. Reported are the updates per second
with pages over those without (the median of the rounds), the processor time of the dashboard, and what it sends.
"""

import argparse
import contextlib
import os
import selectors
import signal
import socket
import statistics
import subprocess
import threading
import time
from pathlib import Path

import runs
from throughput import FOREVER


class Dashboard:
    """The program, with so many pages."""

    def __init__(self, run, pages):
        program = Path(run.supervisor).with_name("dashboard")
        environment = {**os.environ, "XDG_RUNTIME_DIR": run.folder.name}
        command = [str(program), f"{run.folder.name}/runs/latest"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        link, _, run_id = self.process.stdout.readline().strip().partition("#")
        host, _, path = link.removeprefix("http://").partition("/")
        self.received, self.ended = 0, False
        self.pages = selectors.DefaultSelector()
        for _ in range(pages):
            page = socket.create_connection((host.split(":")[0], int(host.split(":")[1])))
            page.sendall(f"GET /{path}runs/{run_id}/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            self.pages.register(page, selectors.EVENT_READ)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        while not self.ended:
            for key, _ in self.pages.select(0.1):
                self.received += len(key.fileobj.recv(1 << 20))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True
        self.reader.join()
        for key in list(self.pages.get_map().values()):
            key.fileobj.close()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)
        self.process.stdout.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=runs.ROOT / "configs/cartpole_dqn.toml")
    parser.add_argument("--supervisor", type=Path, default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--pages", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    print(runs.machine())
    rows = []
    with runs.Run(arguments.supervisor, arguments.config, FOREVER) as run:
        time.sleep(2)
        for pages in arguments.pages:
            ratios, shares, rates = [], [], []
            for round_number in range(arguments.rounds):
                counts = {}
                # Who begins changes, so that what the machine does meanwhile falls on both.
                for looked_at in (False, True) if round_number % 2 else (True, False):
                    with Dashboard(run, pages) if looked_at else contextlib.nullcontext() as dashboard:
                        time.sleep(0.5)
                        before = (runs.cpu_seconds(dashboard.process.pid), dashboard.received) if looked_at else None
                        count, _ = runs.watch(run, arguments.seconds)
                        counts[looked_at] = count("updates")
                        if looked_at:
                            shares.append((runs.cpu_seconds(dashboard.process.pid) - before[0]) / arguments.seconds)
                            rates.append((dashboard.received - before[1]) / arguments.seconds)
                ratios.append(counts[True] / counts[False])
            row = {"pages": pages, "updates/s": f"{statistics.median(ratios):.3f}", "range": f"{min(ratios):.3f} to {max(ratios):.3f}"}
            rows.append({**row, "of a core": f"{statistics.median(shares):.3f}", "KB/s sent": f"{statistics.median(rates) / 1e3:.0f}"})
            print(runs.table(rows[-1:]), flush=True)
    print(f"\n{runs.table(rows)}")
    runs.write(arguments.out, {"machine": runs.machine(), "pages": rows})


if __name__ == "__main__":
    main()
