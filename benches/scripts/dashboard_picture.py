#!/usr/bin/env python3
"""A screenshot of the dashboard, in a browser, while a run learns.

    cargo build --release && python3 benches/scripts/dashboard_picture.py docs/pictures/dashboard.png

Needs Chromium on the PATH and the Python package `playwright`.
"""

import argparse
import shutil
import signal
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

import runs

WIDTH, HEIGHT = 1280, 1120


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--preset", default="pendulum_sac")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--seconds", type=float, default=60, help="how long the run has been learning")
    parser.add_argument("--supervisor", type=Path, default=runs.DEFAULT_SUPERVISOR)
    arguments = parser.parse_args()
    overrides = ['run.stop_eval_return="none"', "run.stop_env_steps=1000000000", "visualizer.enabled=true", *arguments.overrides]
    with runs.Run(arguments.supervisor, runs.ROOT / f"configs/{arguments.preset}.toml", overrides) as run:
        time.sleep(arguments.seconds)
        dashboard = run.dashboard()
        try:
            link = dashboard.stdout.readline().strip()
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
                page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
                page.goto(link)
                # Until rates are measured and charts are drawn.
                page.wait_for_selector("canvas")
                time.sleep(5)
                page.screenshot(path=str(arguments.picture))
                chromium.close()
        finally:
            dashboard.send_signal(signal.SIGINT)
            dashboard.wait(10)
            dashboard.stdout.close()


if __name__ == "__main__":
    main()
