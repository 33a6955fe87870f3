"""Runs the commands of a page one after another, with the placeholders for the reader's own words filled in."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import urllib.request

from command_line import wait_for

from pages.machine import LONG, SHORT, lacks_something, settings
from pages.options import WATCHDOG_S, check_command

ROWS, COLUMNS = 40, 120
#: The beginning of the names of TensorBoard's event files.
EVENTS = "events.out.tfevents."
#: Asks this machine itself, also where a proxy is set for everything else.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def read(descriptor):
    """What a program writes next, or nothing when it has ended."""
    assert select.select([descriptor], [], [], WATCHDOG_S)[0], "nothing is written"
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        # A terminal tells the end of the program by an error.
        return b""


class Terminal:
    """A folder in which commands are run. Commands that look at a running run look at that of the machine."""

    def __init__(self, machine):
        self.machine = machine
        self.folder = machine.place()
        self.output = ""

    def type(self, command):
        words = command.of_shoal
        if words is not None:
            kind, rest = words[0], [self.filled_in(word) for word in words[1:]]
            getattr(self, kind)(rest)
        elif command.program == "kill":
            self.kill(command.words[1:])
        elif command.program == "jq":
            self.jq(command.words[1])
        elif command.program == "tensorboard":
            self.tensorboard(command.words[1:])
        else:
            # Not run, because it installs, builds, or measures for minutes.
            check_command(command)

    def filled_in(self, word):
        """A word with the path of a checkpoint filled in: its name has the steps of the run."""
        run, checkpoints, _ = word.partition("/checkpoints/")
        return str(next((self.folder / run).glob("checkpoints/*-step*"))) if checkpoints else word

    def succeed(self, folder, words):
        result = self.machine.shoal(folder, words)
        assert result.returncode == 0, f"{words}: {result.stderr}"
        self.output = result.stdout
        return result

    def train(self, words):
        if "--check" in words:
            return self.check(words)
        result = self.machine.shoal(self.folder, ["train", *words, *settings(SHORT)])
        if result.returncode == 0:
            # The first is printed by one run, the second by several seeds.
            assert "stopped " in result.stderr or "has ended" in result.stderr, result.stderr
        else:
            assert lacks_something(result.stderr), result.stderr

    def check(self, words):
        """Check a configuration. Returns whether all of it was checked: not if something is not installed."""
        result = self.machine.shoal(self.folder, ["train", *words, *(["--check"] if "--check" not in words else [])])
        assert result.returncode == 0 or lacks_something(result.stderr), f"{words}: {result.stderr}"
        return result.returncode == 0

    def resume(self, words):
        # The run has reached its limit of steps, and goes on only with a higher one.
        steps = json.loads((self.folder / words[0] / "metrics.jsonl").read_text().splitlines()[-1])["env_steps"]
        longer = settings({**SHORT, "run.stop_env_steps": steps + 500})
        assert "stopped " in self.succeed(self.folder, ["resume", *words, *longer]).stderr

    def adopt(self, words):
        """Go on with a run whose supervisor was killed, and end it."""
        latest = self.folder / "runs/latest"
        keep = settings({**LONG, "machine.sentinel": "keep"})
        metrics = latest / "metrics.jsonl"
        with self.machine.started(self.folder, ["train", "cartpole_dqn", *keep], stderr=subprocess.DEVNULL) as killed:
            name = f'"supervisor_pid": {killed.pid}'
            # A run that is killed before it has written its first line of metrics leaves nothing to adopt.
            wait_for("a run", lambda: name in (latest / "run.json").read_text() and metrics.exists() and metrics.stat().st_size)
        run = str(killed.pid) if words[0].isdigit() else words[0]
        with self.machine.started(self.folder, ["adopt", run, *words[1:]], stderr=subprocess.DEVNULL) as adopter:
            wait_for("it to go on", lambda: "goes on in the memory" in (latest / "run.log").read_text())
            adopter.send_signal(signal.SIGINT)
            assert adopter.wait(WATCHDOG_S) == 128 + signal.SIGINT

    def presets(self, words):
        assert "cartpole_dqn" in self.succeed(self.folder, ["presets", *words]).stdout

    def evaluate(self, words):
        assert self.succeed(self.folder, ["evaluate", *words]).stdout
        if "--video" in words:
            video = self.folder / words[words.index("--video") + 1]
            assert video.read_bytes().startswith(b"GIF8")

    def inspect(self, words):
        supervisor, folder = self.machine.live
        if "--live" in words:
            return self.watch(folder, ["inspect", *words])
        assert str(supervisor.pid) in self.succeed(folder, ["inspect", *words]).stdout

    def watch(self, folder, words):
        """Run a full-screen command until it shows something, then press `q`."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
        seen = b""
        with self.machine.started(folder, words, stdin=its, stdout=its, stderr=its) as process:
            os.close(its)
            while b"replay" not in seen:
                more = read(ours)
                assert more, seen
                seen += more
            os.write(ours, b"q")
            # Read what it still draws, or the terminal would be full and the command would wait.
            while read(ours):
                pass
            assert process.wait(WATCHDOG_S) == 0, seen
        os.close(ours)

    def dashboard(self, words):
        _, folder = self.machine.live
        with self.machine.started(folder, ["dashboard", *words], stdout=subprocess.PIPE) as process:
            link = read(process.stdout.fileno()).decode().split()[-1]
            with DIRECT.open(link, timeout=WATCHDOG_S) as page:
                assert b"<html" in page.read()
            process.send_signal(signal.SIGINT)
            assert process.wait(WATCHDOG_S) == 0

    def attach(self, words):
        _, folder = self.machine.live
        joining = int(words[words.index("--actors") + 1]) if "--actors" in words else 1
        with self.machine.started(folder, ["attach", *words], stderr=subprocess.PIPE) as process:
            wait_for("other actors", lambda: process.poll() is not None or len(self.pids("attached_actor")) == joining)
            process.send_signal(signal.SIGINT)
            assert process.wait(WATCHDOG_S) == 0, process.stderr.read()

    def pids(self, role):
        """Process ids of the living processes of a role in the run that goes on."""
        supervisor, folder = self.machine.live
        result = self.machine.shoal(folder, ["inspect", str(supervisor.pid), "--json"])
        found = json.loads(result.stdout)["processes"] if result.returncode == 0 else []
        return [process["pid"] for process in found if process["role"] == role and process["state"] == "live"]

    def kill(self, words):
        assert list(words) == ["-9", "PID_OF_AN_ACTOR"], words
        killed = wait_for("an actor", lambda: self.pids("actor"))[0]
        os.kill(killed, signal.SIGKILL)
        wait_for("another actor", lambda: any(pid != killed for pid in self.pids("actor")))

    def jq(self, expression):
        """Assert that the last output, which is JSON, has each key of the expression."""
        for path in expression.split(","):
            value = json.loads(self.output)
            for key in path.strip().strip(".").split("."):
                value = value[key]

    def tensorboard(self, words):
        assert words[0] == "--logdir"
        self.train(["cartpole_dqn", "--seeds", "1,2"])
        # As TensorBoard looks for them, which follows links.
        folders = list(os.walk(self.folder / words[1], followlinks=True))
        shown = [os.path.realpath(os.path.join(at, it)) for at, _, files in folders for it in files if EVENTS in it]
        runs = [path for path in (self.folder / "runs").rglob("*") if EVENTS in path.name]
        assert len(runs) >= 3 and sorted(shown) == sorted(map(os.path.realpath, runs)), "each run is shown once"
