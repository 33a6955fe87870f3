"""Training from Python. A run is a process with children of its own; this module starts and watches it."""

import atexit
import contextlib
import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._configuration import changes_of, command_line, in_python, too_long
from ._program import answer, fit, started
from .errors import RunError
from .metrics import Metrics, lines_of, once

if TYPE_CHECKING:
    import matplotlib.axes

    from .policies import Policy

#: What can be trained: see :func:`train`.
Trainable = str | os.PathLike[str] | Mapping[str, Mapping[str, Any]] | Callable[..., Any]

# Seconds between two polls of a process.
_POLL_S = 0.02
# Seconds between two checks for signals.
_SIGNAL_POLL_S = 0.5
# Seconds for which a run's standard error is read after the run has ended, if a process that an environment has left
# behind holds it open.
_READ_AFTER_END_S = 1.0
# How the reason of a run that failed begins.
_FAILED = ("gave up: ", "failed: ")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# The text of a line before it was drawn again.
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

    When this process ends, however that happens, the run ends in good order, unless a whole container is killed.
    """
    _refuse_in_a_run()
    given = {key: value for key, value in (("seed", seed), ("name", name)) if value is not None}
    table = tables.get("run")
    for key, value in given.items():
        if isinstance(table, Mapping) and key in table:
            raise TypeError(f"{key}={value!r} and run={{{key!r}: {table[key]!r}}} both set run.{key}: give one")
    arguments, written = command_line(config, algorithm, tables)
    # In one word: a value that begins with a dash would be taken for an option.
    arguments += [f"--{key}={value}" for key, value in given.items()]
    try:
        return _begun(["train", *arguments], quiet)
    except RunError as error:
        # The caller does not know the file, so the error does not name it.
        words = str(error)
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
    """Train an agent and return its run when the run has ended.

    `config` is the name of a preset or of an environment, the path of a TOML file, a dictionary of tables, or a class or
    function that makes an environment of Gymnasium. `algorithm` is the name of an algorithm; it is required if there is
    no preset. Every other keyword is a table of the configuration: `learner={"batch_size": 128}`. With `quiet` the
    output of the run is not shown; `Run.text` has it.

    Ctrl+C ends the run as it does in a terminal: its weights are saved. No run is returned then; `shoal.Run()` finds
    the newest one in `runs`. SIGTERM ends the run, and then this process; see :meth:`Run.wait`.

    `RunError`: the run failed, or could not be started, for instance because a key does not exist; that is found before
    anything is started. The text is the supervisor's. `TypeError`: a value cannot be part of a configuration.
    """
    return start(config, algorithm=algorithm, seed=seed, name=name, quiet=quiet, **tables).wait()


class Run:
    """A run, under way or ended. `Run(folder)` finds the one in a folder, whoever has started it.

    `RunError`: `folder` is not the folder of a run.
    """

    #: The folder with all that the run writes.
    folder: Path

    def __init__(self, folder: str | os.PathLike[str] = "runs/latest") -> None:
        self.folder = _native.found_folder(folder)

    def __repr__(self) -> str:
        try:
            if self.is_running:
                state = "running"
            else:
                state = f"ended: {reason}" if (reason := self.reason) else "killed"
        except OSError as error:
            # The folder may be gone, and notebooks and debuggers still show the run.
            state = error.strerror or str(error)
        return f"<shoal.Run {self.folder} ({state})>"

    @property
    def pid(self) -> int:
        """Process id of the supervisor: what `shoal attach` and `shoal inspect` take."""
        return self.record["supervisor_pid"]

    @property
    def is_running(self) -> bool:
        """Whether the supervisor is alive, be the run announced here or not."""
        try:
            return _native.goes_on(self.folder)
        except RunError:
            return False

    @property
    def text(self) -> str:
        """What the supervisor has printed so far, without terminal control sequences.

        Of a run that another process has started, it is the content of `run.log`.
        """
        return (self.folder / "run.log").read_text(encoding="utf-8", errors="replace")

    @property
    def record(self) -> dict[str, Any]:
        """The content of `run.json`."""
        return json.loads((self.folder / "run.json").read_text(encoding="utf-8"))

    @property
    def reason(self) -> str | None:
        """Why it ended: `solved`, `step limit`, `interrupted`, `terminated` ...; `None` while it runs or if killed."""
        return (self.record.get("finished") or {}).get("reason")

    @property
    def summary(self) -> dict[str, Any] | None:
        """The figures of the closing report; `None` while the run goes on, or if it was killed."""
        return (self.record.get("finished") or {}).get("summary")

    def wait(self, timeout: float | None = None) -> "Run":
        """Wait until the run has ended, and return it.

        Ctrl+C stops a run that this process has started, and is raised again. It leaves any other run alone. While the
        main thread waits for a run that this process has started, and SIGTERM is neither handled nor ignored, SIGTERM
        ends this process only after all runs that this process has started have ended in good order.

        `TimeoutError`: it has not ended within `timeout` seconds. `RunError`: it failed, its supervisor was killed, or
        this process is a fork of the one that has started it. A run that this process has started also raises
        `RunError` if only its last weights could not be saved; for any other run `summary["losses"]` says so.
        """
        if not self._wait(timeout):
            raise self._too_late(timeout)
        if self.reason is not None and self.reason.startswith(_FAILED):
            raise RunError(self._why())
        return self

    def stop(self) -> "Run":
        """Ask the run to end, as Ctrl+C does, and wait until its weights are saved. Returns the run.

        `RunError`: its supervisor was killed, the run is not announced here, or this process is a fork of the one that
        has started it.
        """
        try:
            pid, is_known_here = _native.supervisor_of(self.folder)
        except RunError:
            if self.reason is None:
                raise
            return self
        if not is_known_here:
            raise RunError(f"the run {self.folder} was started in another container: stop it there")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        self._wait()
        return self

    def resume(self, *, quiet: bool = False, **tables: Mapping[str, Any]) -> "Run":
        """Go on with this run, which has ended or was killed, and return it as soon as it trains, as :func:`start` does.

        It continues from its newest checkpoint. The keywords are tables with keys to change, such as the limit that it
        has reached: `run={"stop_env_steps": 2_000_000}`.

        `RunError`: it is under way, it has no checkpoint, it has reached its limit, or a key does not exist or may not
        be changed.
        """
        _refuse_in_a_run()
        return _begun(["resume", str(self.folder), *changes_of(tables)], quiet)

    def metrics(self, follow: bool = False) -> Metrics:
        """The lines of `metrics.jsonl`, each a dictionary; with `follow`, also those to come, until the run ends."""
        return Metrics(self, follow)

    def evaluations(self) -> list[dict[str, Any]]:
        """The lines of `evaluations.jsonl`, each a dictionary; also those of steps taken again after a crash."""
        return lines_of(self.folder / "evaluations.jsonl")

    def inspect(self) -> dict[str, Any]:
        """The output of `shoal inspect --json` for the running run.

        `RunError`: the run cannot be inspected, for instance because it is not announced here.
        """
        pid, _ = _native.supervisor_of(self.folder)
        return answer(RunError, "inspect", str(pid))

    def load(self, weights: Literal["best", "last"] = "best") -> "Policy":
        """The policy that was learned; see :func:`shoal.load`."""
        from .policies import load

        return load(self.folder, weights)

    def plot(self, axes: "matplotlib.axes.Axes | None" = None) -> "matplotlib.axes.Axes":
        """Draw the returns of training and of routine evaluations over steps with matplotlib. Returns the axes.

        In `axes` that are given, which may have other runs, the name of the run's folder is part of the legend.
        """
        name = f"{self.folder.name}, "
        if axes is None:
            import matplotlib.pyplot as plt

            axes, name = plt.subplots()[1], ""
            axes.set(title=self.folder.name)
        trained = [(line["env_steps"], line.get("train_return_mean")) for line in once(self.metrics())]
        # Good weights alone are confirmed, which would bend the curve.
        routine = [line for line in self.evaluations() if line["kind"] == "routine"]
        evaluated = [(line["env_steps"], line["return_mean"]) for line in once(routine)]
        for points, label, marker in ((trained, "training", ""), (evaluated, "evaluation", ".")):
            known = [point for point in points if point[1] is not None]
            if known:
                axes.plot(*zip(*known, strict=True), marker=marker, label=name + label)
        axes.set(xlabel="environment steps", ylabel="return")
        axes.legend()
        return axes

    def _wait(self, timeout=None):
        """Wait until the run has ended, `timeout` seconds at most. Returns whether it has ended.

        `RunError`: its supervisor was killed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while _native.goes_on(self.folder):
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(10 * _POLL_S)
        return True

    def _pause(self, seconds):
        time.sleep(seconds)

    def _too_late(self, timeout):
        return TimeoutError(f"the run {self.folder} has not ended within {timeout} s")

    def _why(self):
        """Why the run failed."""
        return f"{self.reason} (all that it said is in {self.folder / 'run.log'})"


class _OwnRun(Run):
    """A run that this process has started."""

    def __init__(self, command: list[str], quiet: bool) -> None:
        self._text = bytearray()
        self._quiet = quiet
        self._is_ours = True
        self._reader = threading.Thread(target=self._read, name="shoal-run", daemon=True)
        # Without the lock, a child forked before the run is in `_runs` would keep the run alive.
        with _fork_lock:
            if _passed_on:
                raise RunError("SIGTERM ends this process as soon as its runs have ended, so it begins no other run")
            self._process, self._output = started(command)
            _runs.add(self)
        try:
            self._reader.start()
            with _ending_runs_first():
                self.folder = self._found()
        except BaseException:
            self.stop()
            raise

    def __reduce__(self) -> tuple[type[Run], tuple[Path]]:
        """What another process gets, or a copy: a run that it has not started itself."""
        return Run, (self.folder,)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None if self._is_ours else super().is_running

    @property
    def text(self) -> str:
        return _ESCAPES.sub("", self._text.decode(errors="replace")).replace("\r\n", "\n")

    def wait(self, timeout: float | None = None) -> "Run":
        self._refuse_unless_ours()
        try:
            with _ending_runs_first():
                has_ended = self._wait(timeout)
        except KeyboardInterrupt:
            self.stop()
            raise
        if not has_ended:
            raise self._too_late(timeout)
        self._close()
        # 128 or more: a signal asked the run to end, and it ended in good order.
        if 0 < self._process.returncode < 128:
            raise RunError(self._why())
        if self._process.returncode < 0:
            raise RunError(f"the supervisor was killed by {signal.Signals(-self._process.returncode).name}")
        return self

    def stop(self) -> "Run":
        self._refuse_unless_ours()
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        self._wait()
        self._close()
        return self

    def _wait(self, timeout=None):
        """Wait until the supervisor has ended, `timeout` seconds at most. Returns whether it has ended.

        The wait is cut into pieces: a signal does not interrupt it if it arrives just before the call that waits, or in
        another thread.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SIGNAL_POLL_S if deadline is None else min(deadline - time.monotonic(), _SIGNAL_POLL_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max(left, 0))
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False

    def _pause(self, seconds):
        with _ending_runs_first():
            super()._pause(seconds)

    def _found(self):
        """The folder, once the run is announced. A run that ends before that has printed why, and raises `RunError`."""
        while True:
            ended = not self.is_running
            if folder := _native.run_folder(self.pid):
                return Path(folder).absolute()
            if ended:
                self._close()
                # A short run may have ended before it was found here. It has printed its folder.
                said = re.search(r"(?m)^folder +(.+)$", self.text)
                if said and self._process.returncode == 0:
                    return Path(said[1]).absolute()
                raise RunError(self._error_text())
            time.sleep(_POLL_S)

    def _refuse_unless_ours(self):
        if not self._is_ours:
            raise RunError(f"the run of supervisor {self.pid} belongs to another process, which has forked this one")

    def _why(self):
        with contextlib.suppress(OSError, ValueError):
            if self.reason is not None and self.reason.startswith(_FAILED):
                return super()._why()
            # Any other reason is none to fail: the run could not keep what it had learned.
            if lost := (self.summary or {}).get("losses"):
                return f"the run ended ({self.reason}) and has lost: {'; '.join(lost)}"
        return self._error_text()

    def _error_text(self):
        """What the supervisor has printed from its error on, or else its last lines."""
        lines = self.text.strip().splitlines()
        start = next((index for index, line in enumerate(lines) if line.startswith("error: ")), max(len(lines) - 10, 0))
        return "\n".join(lines[start:]).removeprefix("error: ") or "the supervisor has said nothing"

    def _read(self):
        """Keep and show what the supervisor prints, until no process can print any more."""
        with self._output:
            while True:
                try:
                    piece = os.read(self._output.fileno(), 1 << 16)
                except OSError:
                    return
                if not piece:
                    return
                self._keep(piece)
                if not self._quiet:
                    # The window may have another size by now.
                    fit(self._output)
                    try:
                        sys.stderr.write(piece.decode(errors="replace"))
                        sys.stderr.flush()
                    except Exception:  # noqa: BLE001 (the run goes on although its output cannot be shown)
                        self._quiet = True

    def _keep(self, piece):
        """Keep a piece of output; of a line that is drawn again several times a second, only its newest text."""
        newest = self._text.rfind(b"\n") + 1
        self._text[newest:] = _DRAWN_BEFORE.sub(b"", self._text[newest:] + piece)

    def _close(self):
        self._process.stdin.close()
        if self._reader.ident is not None:
            self._reader.join(_READ_AFTER_END_S)

    def _disown(self):
        """Give the run up in the child of a fork: it is the parent's, and ends with the parent."""
        self._is_ours = False
        self._process.stdin.close()
        self._output.close()


def _begun(command, quiet):
    """The run that a command of `shoal` begins or continues. An error names changes as keywords of Python."""
    try:
        return _OwnRun(command, quiet)
    except RunError as error:
        raise RunError(in_python(str(error), command)) from None
    except OSError as error:
        if error.errno != errno.E2BIG:
            raise
        raise TypeError(too_long(command)) from None


def _refuse_in_a_run():
    """Raise in a process of a run: it imports the script that has started the run, and must not train again."""
    if "shoal_bridge" in sys.modules:
        raise RunError(
            'a run imports this module, which trains when it is imported: put that under `if __name__ == "__main__":`'
        )


_runs: "weakref.WeakSet[_OwnRun]" = weakref.WeakSet()
# Held while a run is started, and by a thread that forks.
_fork_lock = threading.RLock()
# What `_pass_on` has passed on. Nothing takes it back: this process ends.
_passed_on: list[int] = []


def _own_runs():
    with _fork_lock:
        return [run for run in _runs if run._is_ours]


def _end_runs():
    """Have the runs of this process end in good order, and wait for that."""
    runs = _own_runs()
    for run in runs:
        run._process.stdin.close()
    for run in runs:
        run._wait()
        run._close()


def _pass_on(number, _):
    """Handle SIGTERM by passing it on to the runs of this process.

    The first one does to a run what the end of this process would do. So if this process is killed while a run writes
    its last checkpoint, that is no second request to end, which would give the checkpoint up.
    """
    _passed_on.append(number)
    for run in _own_runs():
        if run._process.stdin.closed:
            run._process.send_signal(number)
        else:
            run._process.stdin.close()


def _is_handled_or_ignored(number):
    """Whether this process handles or ignores a signal, be that through Python, a library in C, or `faulthandler`."""
    status = Path("/proc/self/status").read_bytes()
    masks = re.findall(rb"(?m)^Sig(?:Ign|Cgt):\s*(\w+)", status)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


@contextlib.contextmanager
def _ending_runs_first():
    """Have SIGTERM end the runs of this process meanwhile, and then this process.

    Otherwise it would end this process at once, and a container ends with its first process, or with the child of an
    `init`: the kernel kills the runs at that moment. A program that handles or ignores SIGTERM is left to itself.
    """
    if threading.current_thread() is not threading.main_thread() or _is_handled_or_ignored(signal.SIGTERM):
        yield
        return
    try:
        signal.signal(signal.SIGTERM, _pass_on)
        yield
    finally:
        try:
            if _passed_on:
                _end_runs()
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if _passed_on:
                os.kill(os.getpid(), signal.SIGTERM)
                # The kernel spares the first process of a container.
                sys.exit(128 + signal.SIGTERM)


def _disown_runs():
    _fork_lock.release()
    for run in list(_runs):
        run._disown()
    # The child does not wait for what its parent waits for, so SIGTERM ends it as it always did, and the one that came
    # was its parent's.
    _passed_on.clear()
    if signal.getsignal(signal.SIGTERM) is _pass_on:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end_with_container():
    """Let the runs of this process end in good order before it ends, if a container may end with it.

    That is so if it is the first process, or the child of an `init` that is.
    """
    if os.getppid() <= 1:
        _end_runs()


def _stop_showing():
    """Show no more output: a thread that writes while the interpreter ends would end it with an error."""
    for run in list(_runs):
        run._quiet = True


os.register_at_fork(before=_fork_lock.acquire, after_in_parent=_fork_lock.release, after_in_child=_disown_runs)
# Called in the reverse order.
atexit.register(_stop_showing)
atexit.register(_end_with_container)
