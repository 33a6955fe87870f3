"""Running supervisors for measurements: start, watch, read what they wrote. Standard library only."""

import json
import os
import platform
import random
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# `cargo build --release` builds it and its neighbours, `cargo xtask train` only `shoal`.
DEFAULT_SUPERVISOR = ROOT / "target/release/supervisor"
# Overrides with which nothing ends a run and no evaluator plays beside it, and those of a run whose metrics are watched.
FOREVER = ["run.stop_env_steps=1000000000000", 'run.stop_eval_return="none"', "evaluator.enabled=false"]
WATCHED = [*FOREVER, "run.metrics_interval_s=0.2"]


def commit():
    """The commit that is checked out, with `.changed` if a file differs from it or is new.

    Pages and the data in `docs` do not count: they are written between measurements, and change none.
    """

    def git(*arguments):
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--", ".", ":!docs", ":!*.md")
    return git("rev-parse", "--short", "HEAD") + (".changed" if changed else "")


def machine():
    """What a figure depends on; written beside it."""
    with open("/proc/cpuinfo") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average_1_min": round(os.getloadavg()[0], 2),
        "commit": commit(),
    }


class Run:
    """A running supervisor with a run folder and a registry of its own."""

    def __init__(self, supervisor, config, overrides):
        self.supervisor, self.folder = supervisor, tempfile.TemporaryDirectory(prefix="shoal-bench-")
        self.latest = Path(self.folder.name) / "runs/latest"
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder.name}
        command = [str(supervisor), str(config), "--set", f'run.folder="{self.folder.name}/runs"']
        for override in overrides:
            command += ["--set", override]
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=self.environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.stderr.close()
        self.process.wait()
        self.folder.cleanup()

    def wait(self, limit_s):
        """Waits for the end of the run and returns the wall seconds from exec to exit."""
        _, self.errors = self.process.communicate(timeout=limit_s)
        if self.process.returncode != 0:
            raise RuntimeError(f"the supervisor failed:\n{self.errors}")
        return time.monotonic() - self.started

    def lines(self, name):
        """The lines of a JSON Lines file in the run folder so far."""
        path = self.latest / name
        if not path.exists():
            return []
        lines = []
        for line in path.read_text().splitlines():
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:
                pass  # The last line of a run under way.
        return lines

    def metrics(self):
        """The lines of metrics so far. Raises once the supervisor has failed, so that nobody waits for more."""
        if self.process.poll() not in (None, 0):
            raise RuntimeError(f"the supervisor failed:\n{self.process.stderr.read()}")
        return self.lines("metrics.jsonl")

    def wait_until(self, key, count):
        """Waits until a counter of the metrics has passed `count`. Raises if the run ends before."""
        while not any(line[key] > count for line in self.metrics()[-1:]):
            if self.process.poll() is not None:
                raise RuntimeError(f"the run ended before its {key} had passed {count}")
            time.sleep(0.02)

    def summary(self):
        """The closing report's figures, from `run.json`. Only after the end."""
        return json.loads((self.latest / "run.json").read_text())["finished"]["summary"]

    def outcome(self, limit_s):
        """Waits for the end of a run with a goal: its wall seconds, steps and updates, and whether the goal was confirmed."""
        wall_s = self.wait(limit_s)
        last, goal = self.metrics()[-1], self.summary()["goal"]
        return {"wall_s": wall_s, "env_steps": last["env_steps"], "updates": last["updates"], "confirmed": goal["confirmed"]}

    def fitted(self):
        """The overrides that an adapting run ended with; none if the run did not adapt. Only after the end."""
        return [word for word in (self.summary()["fitted"] or "").split(";")[0].split() if word != "--set"]

    def evaluate(self, weights, episodes, seed):
        """What `evaluate` says of the `best` or `last` weights of the run. Only after the end."""
        command = [Path(self.supervisor).with_name("evaluate"), self.latest, "--json"]
        command += ["--weights", weights, "--episodes", episodes, "--seed", seed]
        answer = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if answer.returncode != 0:
            raise RuntimeError(f"evaluate failed:\n{answer.stderr}")
        return json.loads(answer.stdout)

    def dashboard(self, stderr=None):
        """The program `dashboard`, started to show the run. Its first line is the link to the page."""
        command = [str(Path(self.supervisor).with_name("dashboard")), str(self.latest)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=self.environment)

    def processes(self):
        """Ids of the supervisor's child processes in the order in which they were forked: sentinel, learners, actors, others.

        Children with another niceness are left out, such as those that write a checkpoint or measure what the cores could
        compute: they do not stay.
        """
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        usual = niceness(self.process.pid)
        return [pid for pid in map(int, Path(path).read_text().split()) if niceness(pid) == usual]


def niceness(pid):
    """The niceness of a process, or `None` if it has ended."""
    try:
        return os.getpriority(os.PRIO_PROCESS, pid)
    except ProcessLookupError:
        return None


def cpu_seconds(pid, known=None):
    """Processor time of all threads of a process so far. If the process is gone: `known`, or an error if that is `None`."""
    try:
        # The id of the process's clock in the kernel, as clock_getcpuclockid(3) computes it.
        return time.clock_gettime_ns((~pid << 3) | 2) / 1e9
    except OSError:
        if known is None:
            raise
        return known


def watch(run, seconds):
    """Watches a run for `seconds`. Returns a function from a counter of the metrics to its rate, and the cores each process used.

    The processes are those of `Run.processes`: first the sentinel, which uses no processor time, then learners, then actors. A
    process that ended meanwhile counts as if it had used no processor time.
    """
    pids = run.processes()
    before = run.metrics()[-1]
    cpu_before = {pid: cpu_seconds(pid) for pid in pids}
    started = time.monotonic()
    time.sleep(seconds)
    after = run.metrics()[-1]
    cpu_after = {pid: cpu_seconds(pid, cpu_before[pid]) for pid in pids}
    elapsed = time.monotonic() - started
    wall_s = after["wall_s"] - before["wall_s"]
    cpu = [(cpu_after[pid] - cpu_before[pid]) / elapsed for pid in pids]
    return (lambda key: (after[key] - before[key]) / wall_s), cpu


def memory_kib(pid):
    """Proportional and resident set size of a process, in KiB."""
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("Pss", "Rss"):
            sizes[name.lower()] = int(rest.split()[0])
    return sizes


def interval(ratios):
    """The 95 % confidence interval of the median of the ratios, by the bootstrap (Efron 1979)."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(10_000))
    return f"{medians[250]:.3f} to {medians[-251]:.3f}"


def table(rows):
    """A Markdown table of rows, each a dictionary."""
    names = list(rows[0])
    text = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    text += ["| " + " | ".join(str(row.get(name, "")) for name in names) + " |" for row in rows]
    return "\n".join(text)


def write(out, result):
    if out:
        Path(out).write_text(json.dumps(result, indent=1) + "\n")
