#!/usr/bin/env python3
"""What the dashboard costs a run that learns: its updates per second with and without open pages, in turns.

    cargo build --release && python3 benches/scripts/dashboard.py

A page is a connection that receives every message, asks for the list of all runs every five seconds and, with a visualizer
(`--picture`), for each picture. It draws nothing, because a browser may be on another machine. With `--beside N`, N ended
runs lie in the folder of the run that is shown. Reported are the updates per second with pages over those without (the
median of the rounds), the processor time of the dashboard, and the bytes that it sends.
"""

import argparse
import contextlib
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import runs

# The intervals at which the page in src/dashboard/page asks.
LIST_INTERVAL_S = 5
PICTURE_INTERVAL_S = 0.2


class Dashboard:
    """The program `dashboard` with a number of open pages."""

    def __init__(self, run, pages, shows_picture):
        self.process = run.dashboard(stderr=subprocess.DEVNULL)
        link, _, run_id = self.process.stdout.readline().strip().partition("#")
        host, _, path = link.removeprefix("http://").partition("/")
        self.received, self.ended = 0, False
        self.asked = {f"http://{host}/{path}runs/": LIST_INTERVAL_S}
        if shows_picture:
            self.asked[f"http://{host}/{path}runs/{run_id}/picture"] = PICTURE_INTERVAL_S
        self.pages = selectors.DefaultSelector()
        for _ in range(pages):
            page = socket.create_connection((host.split(":")[0], int(host.split(":")[1])))
            page.sendall(f"GET /{path}runs/{run_id}/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            self.pages.register(page, selectors.EVENT_READ)
        # Spread over the interval, so that no two pages ask at the same time.
        requests = [[index * interval / pages, interval, url] for url, interval in self.asked.items() for index in range(pages)]
        self.threads = [threading.Thread(target=self.read), threading.Thread(target=self.ask, args=(requests,))]
        for thread in self.threads:
            thread.start()

    def ask(self, requests):
        """Sends requests, each a list of the seconds until it is due, its interval, and its URL."""
        started = time.monotonic()
        # Not by a proxy that is set for everything else.
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while not self.ended:
            request = min(requests)
            due_s, interval, url = request
            wait = started + due_s - time.monotonic()
            if wait > 0:
                time.sleep(min(wait, 0.1))
                continue
            request[0] += interval
            # A run without a visualizer, or before its first picture, answers with an error.
            with contextlib.suppress(urllib.error.HTTPError):
                self.received += len(direct.open(url).read())

    def read(self):
        while not self.ended:
            for key, _ in self.pages.select(0.1):
                self.received += len(key.fileobj.recv(1 << 20))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True
        for thread in self.threads:
            thread.join()
        for key in list(self.pages.get_map().values()):
            key.fileobj.close()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)
        self.process.stdout.close()


def add_ended_runs(run, config, count):
    """Adds the folders of `count` ended runs, all copies of one run, beside that of `run`."""
    if count == 0:
        return
    folder = Path(run.folder.name)
    command = [str(run.supervisor), str(config)]
    for change in (f'run.folder="{folder}/ended"', "run.stop_env_steps=20000", 'run.stop_eval_return="none"'):
        command += ["--set", change]
    subprocess.run(command, check=True, capture_output=True, env=run.environment)
    ended = (folder / "ended/latest").resolve()
    for index in range(count):
        # A copy does not change the link `runs/latest`, which leads to the run that is shown.
        shutil.copytree(ended, folder / "runs" / f"{ended.name[:-4]}{index:04x}", symlinks=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=runs.ROOT / "configs/cartpole_dqn.toml")
    parser.add_argument("--supervisor", type=Path, default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--pages", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--beside", type=int, default=0, help="ended runs beside the one that is shown")
    parser.add_argument("--picture", action="store_true", help="with a visualizer, whose picture every page shows")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    print(runs.machine())
    rows = []
    overrides = [*runs.WATCHED, *(["visualizer.enabled=true"] if arguments.picture else [])]
    with runs.Run(arguments.supervisor, arguments.config, overrides) as run:
        add_ended_runs(run, arguments.config, arguments.beside)
        time.sleep(2)
        for pages in arguments.pages:
            ratios, shares, rates = [], [], []
            for round_number in range(arguments.rounds):
                counts = {}
                # The order alternates, so that disturbances of the machine affect both.
                for looked_at in (False, True) if round_number % 2 else (True, False):
                    with Dashboard(run, pages, arguments.picture) if looked_at else contextlib.nullcontext() as dashboard:
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
