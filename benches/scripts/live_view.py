#!/usr/bin/env python3
"""The picture of the live view: runs a preset, opens `inspect --live` beside it, and writes what the terminal shows as SVG.

Needs the packages `pyte` (a terminal without a screen) and `rich` (text as SVG).
"""

import argparse
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import time
from pathlib import Path

import pyte
import runs
from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 120, 40


def colour(name):
    """A colour of pyte as rich names it."""
    if name == "default":
        return ""
    return f"#{name}" if len(name) == 6 and all(digit in "0123456789abcdef" for digit in name) else name.replace("brown", "yellow")


def style(cell):
    words = ["bold"] * cell.bold + ["reverse"] * cell.reverse + [colour(cell.fg)]
    return " ".join(words + [f"on {colour(cell.bg)}"] * (cell.bg != "default")).strip()


def watch(command, seconds):
    """The lines that `command` shows on its terminal after some seconds. Then it is asked to end (`q`)."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            stream.feed(os.read(terminal, 1 << 16))
    lines = []
    for row in range(ROWS):
        line = Text()
        for column in range(COLUMNS):
            cell = screen.buffer[row][column]
            line.append(cell.data, style(cell))
        lines.append(line)
    os.write(terminal, b"q")
    os.waitpid(child, 0)
    while lines and not lines[-1].plain.strip():
        lines.pop()
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--config", default=runs.ROOT / "configs/cartpole_dqn.toml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seconds", type=float, default=10, help="how long the run has been learning")
    parser.add_argument("--programs", type=Path, default=runs.ROOT / "target/release")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        overrides = [word for one in arguments.set for word in ("--set", one)]
        command = [arguments.programs / "supervisor", arguments.config, *overrides]
        run = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(arguments.seconds / 2)
        lines = watch([str(arguments.programs / "inspect"), str(run.pid), "--live"], arguments.seconds / 2)
        run.terminate()
        run.wait()
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere)
        for line in lines:
            console.print(line, no_wrap=True, crop=True)
    picture = console.export_svg(title="shoal inspect runs/latest --live")
    # Without the web fonts that the picture would load: any fixed-width font will do.
    arguments.out.write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL))


if __name__ == "__main__":
    main()
