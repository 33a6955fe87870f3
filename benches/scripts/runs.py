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
DEFAULT_SUPERVISOR = ROOT / "target/release/supervisor"


def machine():
    """What a figure depends on, to be written beside it."""
    with open("/proc/cpuinfo") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average_1_min": round(os.getloadavg()[0], 2),
        "commit": commit.stdout.strip(),
    }


class Run:
    """A supervisor under way, in a run folder of its own."""

    def __init__(self, supervisor, config, overrides):
        self.supervisor, self.folder = supervisor, tempfile.TemporaryDirectory(prefix="shoal-bench-")
        command = [str(supervisor), str(config), "--set", f'run.folder="{self.folder.name}/runs"']
        for override in overrides:
            command += ["--set", override]
        environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder.name}
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)

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
        """Wait for the end; returns the wall seconds from exec to exit."""
        _, self.errors = self.process.communicate(timeout=limit_s)
        if self.process.returncode != 0:
            raise RuntimeError(f"the supervisor failed:\n{self.errors}")
        return time.monotonic() - self.started

    def lines(self, name):
        path = Path(self.folder.name) / "runs/latest" / name
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
        """What it wrote so far; an error once it has failed, so that nobody waits for more."""
        if self.process.poll() not in (None, 0):
            raise RuntimeError(f"the supervisor failed:\n{self.process.stderr.read()}")
        return self.lines("metrics.jsonl")

    def summary(self):
        """The closing report's figures, from `run.json`. Only after the end."""
        return json.loads((Path(self.folder.name) / "runs/latest/run.json").read_text())["finished"]["summary"]

    def fitted(self):
        """The overrides that repeat, without a search, what a run that fitted itself ended with; none of another run. Only after the end."""
        return [word for word in (self.summary()["fitted"] or "").split(";")[0].split() if word != "--set"]

    def evaluate(self, weights, episodes, seed):
        """What `evaluate` says of the weights that the run left: `best` or `last`. Only after the end."""
        command = [Path(self.supervisor).with_name("evaluate"), Path(self.folder.name) / "runs/latest", "--json"]
        command += ["--weights", weights, "--episodes", episodes, "--seed", seed]
        answer = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if answer.returncode != 0:
            raise RuntimeError(f"evaluate failed:\n{answer.stderr}")
        return json.loads(answer.stdout)

    def processes(self):
        """Process ids by role, from the cores' point of view: the children in the order in which they were forked.

        Those that let training go first do not stay (whoever writes a checkpoint, or measures what the cores could compute), and are
        left out.
        """
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        usual = niceness(self.process.pid)
        return [pid for pid in map(int, Path(path).read_text().split()) if niceness(pid) == usual]


def niceness(pid):
    """How far a process lets others go first; `None` of one that has ended."""
    try:
        return os.getpriority(os.PRIO_PROCESS, pid)
    except ProcessLookupError:
        return None


def cpu_seconds(pid, known=None):
    """Processor time of all threads of a process so far; of one that is gone what was `known` of it, or an error."""
    try:
        # The kernel's clock of that process, as clock_getcpuclockid(3) has it.
        return time.clock_gettime_ns((~pid << 3) | 2) / 1e9
    except OSError:
        if known is None:
            raise
        return known


def watch(run, seconds):
    """Watch a run for `seconds`: a function that gives the rate of a counter of its metrics, and the cores each process used.

    Of the processes the sentinel comes first, then learners, then actors; it uses no processor time. One that ended meanwhile counts as if it
    had used none.
    """
    pids = run.processes()
    before, cpu_before, at = run.metrics()[-1], {pid: cpu_seconds(pid) for pid in pids}, time.monotonic()
    time.sleep(seconds)
    after, cpu_after, elapsed = run.metrics()[-1], {pid: cpu_seconds(pid, cpu_before[pid]) for pid in pids}, time.monotonic() - at
    wall_s = after["wall_s"] - before["wall_s"]
    cpu = [(cpu_after[pid] - cpu_before[pid]) / elapsed for pid in pids]
    return (lambda key: (after[key] - before[key]) / wall_s), cpu


def memory_kib(pid):
    """Proportional and resident set size."""
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("Pss", "Rss"):
            sizes[name.lower()] = int(rest.split()[0])
    return sizes


def interval(ratios):
    """Where the median of the ratios would lie in 95 of 100 repetitions: from the ratios themselves, drawn again (Efron 1979)."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(10_000))
    return f"{medians[250]:.3f} to {medians[-251]:.3f}"


def table(rows):
    """Rows of a dictionary each as a markdown table."""
    names = list(rows[0])
    text = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    text += ["| " + " | ".join(str(row.get(name, "")) for name in names) + " |" for row in rows]
    return "\n".join(text)


def write(out, result):
    if out:
        Path(out).write_text(json.dumps(result, indent=1) + "\n")
