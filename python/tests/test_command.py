"""The command `shoal`: its processes are forks of an interpreter, and behave like those of the program of cargo."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from command_line import ENVIRONMENT, WATCHDOG_S, command, processes_in, run, wait_for

from shoal import _command

#: Neither the return of an evaluation nor a number of steps ends the run during a test. Its time does: nobody else would
#: if pytest had to give up, or was killed.
LIMITS = ("run.stop_eval_return=none", "run.stop_env_steps=1_000_000_000_000", "run.stop_wall_s=600")
LONG = [word for limit in LIMITS for word in ("--set", limit)]


def start(*arguments):
    return subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, text=True)


def seen(pid):
    """What `inspect` sees of the run, once it can be seen."""
    result = run("inspect", pid, "--json")
    return json.loads(result.stdout) if result.returncode == 0 else None


def living(pid, role):
    found = (seen(pid) or {}).get("processes", [])
    return [process["pid"] for process in found if process["role"] == role and process["state"] == "live"]


def env_steps(pid):
    return ((seen(pid) or {}).get("run") or {}).get("env_steps", 0)


def drawn(pid):
    """The random numbers that the environments of an actor have drawn so far."""
    file = Path(f"drawn-{pid}")
    return file.read_text().split() if file.exists() else []


def test_a_program_without_numpy_lists_the_presets(folder):
    code = "import sys; sys.modules['numpy'] = None; sys.argv = ['shoal', 'presets', '--json']; from shoal._command import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["presets"][0]["name"] == "cartpole_dqn"


def test_a_trained_agent_is_evaluated_and_resumed(folder):
    trained = run("train", "cartpole_dqn", "--set", "run.stop_env_steps=5000")
    assert trained.returncode == 0, trained.stderr
    played = run("evaluate", "--episodes", 3, "--json")
    assert played.returncode == 0 and len(json.loads(played.stdout)["returns"]) == 3
    filmed = run("evaluate", "--episodes", 1, "--video", "first.mp4")
    assert filmed.returncode != 0 and "take gif instead" in filmed.stderr and "cargo" not in filmed.stderr
    resumed = run("resume", "runs/latest", "--set", "run.stop_env_steps=50000")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(Path("runs/latest/run.json").read_text())["resumptions"] == 1


def test_several_seeds_are_runs_of_their_own(folder):
    result = run("train", "cartpole_dqn", "--seeds", "1-2", "--set", "run.stop_env_steps=2000")
    assert result.returncode == 0, result.stderr
    assert "seed 2 has ended" in result.stderr


def test_actors_are_forks_that_python_knows_of_and_are_replaced_when_killed(folder):
    Path("task.py").write_text(ENVIRONMENT)
    Path("task.toml").write_text(
        '[environment]\nid = "python:task.py:Corridor"\n[algorithm]\nname = "dqn"\n'
        "[actor]\ncount = 2\n[evaluator]\nenabled = false\n[replay]\ncapacity = 4096\nmin_size = 64\n"
    )
    supervisor = start("train", "task.toml", *LONG)
    # An actor that was replaced because it took too long to start has drawn no numbers.
    before = wait_for(
        "numbers of two actors", lambda: len(found := living(supervisor.pid, "actor")) == 2 and all(map(drawn, found)) and found
    )
    wait_for("steps", lambda: env_steps(supervisor.pid) > 500)
    os.kill(before[0], signal.SIGKILL)
    after = wait_for(
        "the number of another actor",
        lambda: (
            len(found := living(supervisor.pid, "actor")) == 2
            and before[0] not in found
            and all(map(drawn, found))
            and found
        ),
    )
    steps = env_steps(supervisor.pid)
    wait_for("more steps", lambda: env_steps(supervisor.pid) > steps + 500)
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait(WATCHDOG_S) == 130, supervisor.stderr.read()
    # The module `random` draws other numbers in each fork only if Python knows of the fork.
    numbers = [drawn(pid)[0] for pid in {*before, *after}]
    assert len(set(numbers)) == len(numbers) >= 3


def test_actors_of_another_process_join(folder):
    supervisor = start("train", "cartpole_dqn", *LONG)
    wait_for("an actor", lambda: living(supervisor.pid, "actor"))
    attached = start("attach", supervisor.pid)
    wait_for("another actor", lambda: living(supervisor.pid, "attached_actor"))
    attached.send_signal(signal.SIGTERM)
    assert attached.wait(WATCHDOG_S) == 0
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait(WATCHDOG_S) == 130


def test_a_killed_supervisor_takes_everything_with_it(folder, registry):
    supervisor = start("train", "cartpole_dqn", *LONG)
    wait_for("steps", lambda: env_steps(supervisor.pid) > 0)
    supervisor.kill()
    supervisor.wait()
    wait_for("the end of all", lambda: not processes_in(folder) and not list(registry.glob("*")))


def test_the_registry_of_a_test_leaves_room_for_long_names_of_users_and_temporary_folders(registry):
    assert len(f"{registry}/4194304.socket") < len(tempfile.gettempdir()) + 60


def test_another_interpreter_is_refused_with_the_command_that_uses_it(folder):
    python = folder / "python0"
    python.touch()
    Path("task.toml").write_text(
        f'[environment]\nid = "gymnasium:CartPole-v1"\npython = "{python}"\n[algorithm]\nname = "dqn"\n'
    )
    result = run("train", "task.toml")
    assert result.returncode == 1
    assert f"{python} -m shoal" in result.stderr and "environment.python" in result.stderr


def test_what_a_user_types_for_the_program_stays_one_command_whatever_the_folder_is_called(monkeypatch):
    python, script = "/my venv/bin/python", "/my venv/bin/shoal"
    monkeypatch.setattr(sys, "orig_argv", [python, "-m", "shoal", "train"])
    for program, typed in [("/my venv/lib/shoal/__main__.py", [python, "-m", "shoal"]), (script, [script])]:
        monkeypatch.setattr(sys, "argv", [program, "train"])
        assert shlex.split(_command._typed()) == typed


def test_threads_of_a_debugger_are_named_with_the_way_out(folder):
    code = """
import sys, threading, time
threading.Thread(target=time.sleep, args=(60,), name="pydevd.Writer", daemon=True).start()
sys.argv = ["shoal", "presets"]
from shoal._command import main
main()
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert result.returncode == 1 and "(pydevd.Writer)" in result.stderr, result.stderr
    assert '"subProcess": false in launch.json' in result.stderr and "PyCharm" in result.stderr
