"""Training from Python. A run is a process of its own, with its own children; this module starts it and looks at it."""

import atexit
import contextlib
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from fcntl import ioctl
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._configuration import command_line
from .errors import RunError

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

    from .policies import Policy

#: What can be trained: see :func:`train`.
Trainable = str | os.PathLike[str] | Mapping[str, Mapping[str, Any]] | Callable[..., Any]

# Seconds between two looks at a process or a file of which no notice comes.
_LOOK_S = 0.02
# Seconds between two looks for signals, of which no notice comes either.
_LOOK_FOR_SIGNALS_S = 0.5
# Seconds of reading the run's standard error after its end: a process that an environment left may hold it open.
_LAST_WORDS_S = 1.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# What a line said before it was drawn again.
_DRAWN_BEFORE = re.compile(rb"(?m)^[^\n]*\r\x1b\[2K")


def start(
    config: Trainable,
    *,
    algorithm: str | Mapping[str, Any] | None = None,
    seed: int | None = None,
    name: str | None = None,
    quiet: bool = False,
    **tables: Mapping[str, Any],
) -> "Run":
    """Start a run and return it as soon as it trains; see :func:`train` for the arguments.

    The run ends, in order, when this process does, however that happens.
    """
    if "shoal_bridge" in sys.modules:
        # A process of a run imports the script that has started the run.
        raise RunError(
            'a run imports this module, which trains when it is imported: put that under `if __name__ == "__main__":`'
        )
    arguments, written = command_line(config, algorithm, tables)
    for option, value in (("--seed", seed), ("--name", name)):
        arguments += [] if value is None else [option, str(value)]
    try:
        return Run(arguments, quiet)
    except RunError as error:
        # The caller has written neither a file nor options.
        words = re.sub(r"(?m)^--set ", "", str(error))
        raise RunError(words if written is None else re.sub(re.escape(written) + r"(:\d+)*: ", "", words)) from None
    finally:
        if written is not None:
            os.unlink(written)


def train(
    config: Trainable,
    *,
    algorithm: str | Mapping[str, Any] | None = None,
    seed: int | None = None,
    name: str | None = None,
    quiet: bool = False,
    **tables: Mapping[str, Any],
) -> "Run":
    """Train an agent and return its run when that has ended.

    `config` is the name of a preset or of an environment, the path of a TOML file, a dictionary of tables, or a class or
    function that makes an environment of Gymnasium. `algorithm` is one's name, and must be given where there is no preset.
    Every other keyword is a table of the configuration: `learner={"batch_size": 128}`. With `quiet` the output of
    the run is not shown; `Run.text` has it.

    Ctrl+C ends the run as it does in a terminal: its weights are saved. `RunError` has the supervisor's own words, for
    instance about a key that does not exist, and comes before anything is started; `TypeError` is about what no
    configuration could hold.
    """
    return start(config, algorithm=algorithm, seed=seed, name=name, quiet=quiet, **tables).wait()


class Run:
    """A run that this process has started."""

    def __init__(self, arguments: list[str], quiet: bool) -> None:
        self._text = bytearray()
        self._quiet = quiet
        self._is_ours = True
        self._reader = threading.Thread(target=self._read, name="shoal-run", daemon=True)
        # Without the lock, a fork between the start and the note of it could leave a child that keeps the run alive.
        with _forks:
            self._process, self._source = _started(["train", *arguments])
            _runs.add(self)
        try:
            self._reader.start()
            #: Process id of the supervisor: what `shoal attach` and `shoal inspect` take.
            self.pid: int = self._process.pid
            #: The folder with all that the run writes.
            self.folder: Path = self._found()
        except BaseException:
            self.stop()
            raise

    def __repr__(self) -> str:
        state = "running" if self.is_running else f"ended: {self.reason}"
        return f"<shoal.Run {self.folder} ({state})>"

    @property
    def is_running(self) -> bool:
        """Whether the supervisor is alive."""
        return self._process.poll() is None if self._is_ours else _native.run_folder(self.pid) is not None

    @property
    def text(self) -> str:
        """What the supervisor has said so far."""
        return _ESCAPES.sub("", self._text.decode(errors="replace")).replace("\r\n", "\n")

    @property
    def record(self) -> dict[str, Any]:
        """The content of `run.json`."""
        return json.loads((self.folder / "run.json").read_text())

    @property
    def reason(self) -> str | None:
        """Why the run ended: `solved`, `step limit`, `interrupted` ...; `None` as long as it goes on, or if it was killed."""
        return (self.record.get("finished") or {}).get("reason")

    @property
    def summary(self) -> dict[str, Any] | None:
        """The figures of the closing report; `None` as long as the run goes on, or if it was killed."""
        return (self.record.get("finished") or {}).get("summary")

    def wait(self, timeout: float | None = None) -> "Run":
        """Wait for the end and return this run. `TimeoutError` after `timeout` seconds; Ctrl+C stops the run, and is raised again."""
        self._refuse_unless_ours()
        try:
            has_ended = self._wait(timeout)
        except KeyboardInterrupt:
            self.stop()
            raise
        if not has_ended:
            raise TimeoutError(f"the run {self.folder} has not ended within {timeout} s")
        self._close()
        # 128 and more: a signal has asked it to end, and it has.
        if 0 < self._process.returncode < 128:
            raise RunError(self._why())
        if self._process.returncode < 0:
            raise RunError(f"the supervisor was killed by {signal.Signals(-self._process.returncode).name}")
        return self

    def stop(self) -> "Run":
        """Ask the run to end, as Ctrl+C does, and wait until its weights are saved. Returns this run."""
        self._refuse_unless_ours()
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        self._wait()
        self._close()
        return self

    def metrics(self, follow: bool = False) -> "Metrics":
        """The lines of `metrics.jsonl`, each a dictionary; with `follow`, also those to come, until the run ends."""
        return Metrics(self, follow)

    def evaluations(self) -> list[dict[str, Any]]:
        """The lines of `evaluations.jsonl`, each a dictionary."""
        return _lines(self.folder / "evaluations.jsonl")

    def inspect(self) -> dict[str, Any]:
        """What `shoal inspect --json` sees of the running run."""
        command = [sys.executable, "-P", "-m", "shoal", "inspect", str(self.pid), "--json"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            said = f"\n{result.stderr}".rpartition("\nerror: ")[2].strip()
            raise RunError(said or f"shoal inspect ended with {result.returncode}")
        return json.loads(result.stdout)

    def load(self, weights: Literal["best", "last"] = "best") -> "Policy":
        """The policy that was learned; see :func:`shoal.load`."""
        from .policies import load

        return load(self.folder, weights)

    def plot(self, axes: "matplotlib.axes.Axes | None" = None) -> "matplotlib.axes.Axes":
        """Draw the returns of training and evaluation over environment steps with matplotlib. Returns the axes."""
        import matplotlib.pyplot as plt

        axes = plt.subplots()[1] if axes is None else axes
        for key, label, marker in (("train_return_mean", "training", ""), ("eval_return_mean", "evaluation", ".")):
            points = [(line["env_steps"], line[key]) for line in self.metrics() if line.get(key) is not None]
            if points:
                axes.plot(*zip(*points, strict=True), marker=marker, label=label)
        axes.set(xlabel="environment steps", ylabel="return", title=self.folder.name)
        axes.legend()
        return axes

    def _wait(self, timeout=None):
        """Wait until the supervisor has ended; whether it has.

        A look now and then, since a signal that comes just before a call that waits, or to another thread, ends no waiting.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _LOOK_FOR_SIGNALS_S if deadline is None else min(deadline - time.monotonic(), _LOOK_FOR_SIGNALS_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max(left, 0))
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False

    def _found(self):
        """The folder, once the run can be seen by others. A run that does not get there has said why."""
        while True:
            ended = not self.is_running
            if folder := _native.run_folder(self.pid):
                return Path(folder).absolute()
            if ended:
                self._close()
                # A run that was over before it was looked for has printed its folder.
                said = re.search(r"(?m)^folder +(.+)$", self.text)
                if said and self._process.returncode == 0:
                    return Path(said[1]).absolute()
                raise RunError(self._last_words())
            time.sleep(_LOOK_S)

    def _refuse_unless_ours(self):
        if not self._is_ours:
            raise RunError(f"the run of supervisor {self.pid} is another process's: this one was forked by that")

    def _why(self):
        """Why the run failed."""
        with contextlib.suppress(OSError, ValueError):
            if self.reason is not None:
                return f"{self.reason} (all that it said is in {self.folder / 'run.log'})"
        return self._last_words()

    def _last_words(self):
        lines = self.text.strip().splitlines()
        start = next((index for index, line in enumerate(lines) if line.startswith("error: ")), max(len(lines) - 10, 0))
        return "\n".join(lines[start:]).removeprefix("error: ") or "the supervisor has said nothing"

    def _read(self):
        """Keep what the supervisor says, and show it. Ends when no process can write any more."""
        with self._source:
            while True:
                try:
                    piece = os.read(self._source.fileno(), 1 << 16)
                except OSError:
                    return
                if not piece:
                    return
                self._keep(piece)
                if not self._quiet:
                    try:
                        sys.stderr.write(piece.decode(errors="replace"))
                        sys.stderr.flush()
                    except Exception:  # noqa: BLE001 (whoever cannot be shown it loses nothing else by that)
                        self._quiet = True

    def _keep(self, piece):
        """Keep what was said; of a line that is drawn again several times a second, only its newest text."""
        newest = self._text.rfind(b"\n") + 1
        self._text[newest:] = _DRAWN_BEFORE.sub(b"", self._text[newest:] + piece)

    def _close(self):
        self._process.stdin.close()
        if self._reader.ident is not None:
            self._reader.join(_LAST_WORDS_S)

    def _let_go(self):
        """In a child of a fork: the run is the parent's, and ends with that."""
        self._is_ours = False
        self._process.stdin.close()
        self._source.close()


_runs: "weakref.WeakSet[Run]" = weakref.WeakSet()
# Held while a run is started, and by a thread that forks.
_forks = threading.RLock()


def _let_go_of_runs():
    _forks.release()
    for run in list(_runs):
        run._let_go()


def _be_quiet():
    """A thread that writes while the interpreter ends would end it with an error."""
    for run in list(_runs):
        run._quiet = True


os.register_at_fork(before=_forks.acquire, after_in_parent=_forks.release, after_in_child=_let_go_of_runs)
atexit.register(_be_quiet)


class Metrics:
    """Lines of `metrics.jsonl`: iterate over them, or have them as a table."""

    def __init__(self, run: Run, follow: bool) -> None:
        self._run, self._follow = run, follow

    def __iter__(self) -> Iterator[dict[str, Any]]:
        path = self._run.folder / "metrics.jsonl"
        if not self._follow:
            yield from _lines(path)
            return
        seen_bytes = 0
        while True:
            goes_on = self._run.is_running
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                file.seek(seen_bytes)
                text = file.read()
                whole = text[: text.rfind(b"\n") + 1]
                seen_bytes += len(whole)
                yield from map(json.loads, whole.splitlines())
            if not goes_on:
                return
            time.sleep(10 * _LOOK_S)

    def to_pandas(self) -> "pandas.DataFrame":
        """A `pandas.DataFrame` with one row per line."""
        import pandas

        return pandas.DataFrame(list(self))


def _lines(path):
    """The whole lines of a file, which may be written meanwhile."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _is_terminal(stream):
    """Whether `stream` is a terminal. Embedders and services may have none, one that is no file, or a closed one."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return bool(stream.isatty())
    return False


def _started(arguments):
    """The program `shoal` with `arguments`, and the file from which to read what it says.

    If this process writes to a terminal, the program gets one too, so that it shows its progress in the same way.
    """
    command = [sys.executable, "-P", "-m", "shoal", *arguments]
    # Its standard input ends when this process does, and it ends then.
    environment = {**os.environ, "SHOAL_ENDS_WITH_STDIN": "1"}
    # In a group of its own, so that Ctrl+C reaches it once: through `wait`.
    settings = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "env": environment, "process_group": 0}
    # Without buffers, whose locks a fork could copy.
    settings["bufsize"] = 0
    if not _is_terminal(sys.stderr):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, **settings)
        return process, process.stderr
    ours, theirs = pty.openpty()
    columns, rows = shutil.get_terminal_size()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(command, stderr=theirs, **settings)
    os.close(theirs)
    return process, os.fdopen(ours, "rb", buffering=0)
