"""Training from Python: `shoal.train`, `shoal.start` and `shoal.Run`."""

import functools
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time
import tomllib
from fcntl import ioctl
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from command_line import ENVIRONMENT, WATCHDOG_S, processes_in, wait_for

import shoal

SHORT = {"stop_env_steps": 2000}
ENDLESS = {"stop_eval_return": "none", "stop_env_steps": 10**12}


class Task:
    """Stands for an environment, in a module that can be imported."""


def test_a_run_is_trained_and_tells_what_it_did(folder):
    run = shoal.train("cartpole_dqn", seed=3, name="short", run=SHORT, learner={"batch_size": np.int64(32)}, quiet=True)
    assert run.folder.is_absolute() and run.folder.parent == folder / "runs"
    assert (run.reason, run.record["name"], run.is_running) == ("step limit", "short-seed3", False)
    lines = list(run.metrics())
    assert lines[-1]["env_steps"] >= 2000 and lines == list(run.metrics(follow=True))
    metrics = run.metrics()
    assert (len(metrics), metrics[-1], metrics[1:]) == (len(lines), lines[-1], lines[1:])
    assert (
        "batch_size = 32" in (run.folder / "config.toml").read_text()
        and "seed = 3" in (run.folder / "config.toml").read_text()
    )
    assert run.summary["env_steps"] >= 2000 and "stopped" in run.text


def test_a_run_that_was_started_is_watched_and_stopped(folder):
    run = shoal.start("cartpole_dqn", run=ENDLESS, quiet=True)
    assert run.is_running and run.reason is None
    line = next(line for line in run.metrics(follow=True) if line["env_steps"] > 0)
    assert run.inspect()["run"]["env_steps"] >= line["env_steps"]
    with pytest.raises(TimeoutError):
        run.wait(timeout=0.1)
    assert run.stop().reason == "interrupted"
    assert (run.folder / "weights/last.safetensors").exists()
    with pytest.raises(shoal.RunError) as told:
        run.inspect()
    assert str(told.value) and not str(told.value).startswith("error: ")


def test_a_run_starts_from_what_another_has_learned(folder):
    first = shoal.train("cartpole_dqn", run=SHORT, quiet=True)
    second = shoal.train("cartpole_dqn", run={**SHORT, "start_from": first.folder}, quiet=True)
    assert f"starts from {first.folder}/checkpoints/" in (second.folder / "run.log").read_text()


def test_a_configuration_may_be_a_dictionary(folder):
    config = {
        "environment": {"id": "CartPole-v1"},
        "algorithm": {"name": "dqn"},
        "network": {"hidden": (32, 32)},
        "run": SHORT,
    }
    run = shoal.train(config, quiet=True)
    assert "hidden = [32, 32]" in (run.folder / "config.toml").read_text()
    assert run.folder.name.split("-")[2] == "CartPole_v1"
    assert not list((folder / "runs").glob("*.toml"))


def test_a_run_of_a_dictionary_has_the_name_that_it_is_given(folder):
    config = {"environment": {"id": "CartPole-v1"}, "algorithm": {"name": "dqn"}, "run": SHORT}
    named = {**config, "run": {**SHORT, "name": "inside"}}
    for run in (
        shoal.train(config, name="given", quiet=True),
        shoal.train(config, run={"name": "given"}, quiet=True),
        shoal.train(named, name="given", quiet=True),
    ):
        assert run.folder.name.split("-")[2] == "given"
    assert shoal.train(named, quiet=True).folder.name.split("-")[2] == "inside"


def test_an_environment_without_a_preset_is_trained_by_the_given_algorithm(folder):
    run = shoal.train("gymnasium:CartPole-v1", algorithm="ppo", run=SHORT, quiet=True)
    assert run.reason == "step limit"


def test_an_actor_critic_without_a_preset_makes_an_update_for_each_step_whatever_the_batch(folder):
    run = shoal.train("MountainCarContinuous-v0", algorithm="sac", run=SHORT, learner={"batch_size": 16}, quiet=True)
    written = tomllib.loads((run.folder / "config.toml").read_text())
    assert (written["replay"]["samples_per_insert"], written["replay"]["prioritized"]) == (16, False)


def test_a_class_of_a_script_is_an_environment_to_train_in(folder):
    (folder / "task.py").write_text(
        ENVIRONMENT
        + textwrap.dedent("""
        if __name__ == "__main__":
            import shoal
            run = shoal.train(Corridor, algorithm="dqn", run={"stop_env_steps": 1000}, quiet=True)
            print(run.reason, run.load("last")(numpy.zeros(2)))
        """)
    )
    result = subprocess.run(
        [sys.executable, "task.py"], capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert result.stdout.startswith("step limit "), result.stderr
    code = "import task, shoal; print(shoal.train(task.Corridor, algorithm='dqn', run={'stop_env_steps': 1000}, quiet=True).reason)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert result.stdout == "step limit\n", result.stderr


def made_by_hand(monkeypatch, folder):
    """A class in a module that nothing has imported, as programs make one that run notebooks."""
    module = ModuleType("made")
    module.__file__ = str(folder / "made.ipynb")
    module.Made = type("Made", (), {"__module__": "made"})
    monkeypatch.setitem(sys.modules, "made", module)
    return module.Made


def test_a_wrong_configuration_is_refused_before_anything_starts(folder, monkeypatch):
    with pytest.raises(shoal.RunError, match="did you mean `cartpole_dqn`"):
        shoal.train("cartpole_dqnn", quiet=True)
    with pytest.raises(shoal.RunError, match=r'^learner={"batch_sise": 3}: .*did you mean `batch_size`'):
        shoal.train("cartpole_dqn", learner={"batch_sise": 3}, quiet=True)
    with pytest.raises(shoal.RunError, match='^learner={"learning_rate": True}: '):
        shoal.train("cartpole_dqn", learner={"learning_rate": True}, quiet=True)
    with pytest.raises(TypeError, match="algorithm='ppo'"):
        shoal.train(Task, quiet=True)
    with pytest.raises(TypeError, match="environment is 'CartPole-v1'; beside a class .* holds keys"):
        shoal.train(Task, algorithm="dqn", environment="CartPole-v1", quiet=True)
    with pytest.raises(TypeError, match="environment has the id 'CartPole-v1' beside a class"):
        shoal.train(Task, algorithm="dqn", environment={"id": "CartPole-v1"}, quiet=True)
    with pytest.raises(TypeError, match="cannot import builtins"):
        shoal.train(object, algorithm="dqn", quiet=True)
    with pytest.raises(TypeError, match="cannot import .*<lambda>"):
        shoal.train(lambda: None, algorithm="dqn", quiet=True)
    with pytest.raises(TypeError, match="cannot import made, where Made is defined"):
        shoal.train(made_by_hand(monkeypatch, folder), algorithm="dqn", quiet=True)
    with pytest.raises(shoal.RunError, match="^total_timesteps=3000: .*run.stop_env_steps"):
        shoal.train("cartpole_dqn", total_timesteps=3000, quiet=True)
    with pytest.raises(shoal.RunError, match="belongs to .learner"):
        shoal.train("cartpole_dqn", batch_size=3, quiet=True)
    with pytest.raises(shoal.RunError, match="sac needs continuous actions"):
        shoal.train("CartPole-v1", algorithm="sac", quiet=True)
    with pytest.raises(shoal.RunError, match="algorithm.name=ppo"):
        shoal.train("gymnasium:CartPole-v1", quiet=True)
    with pytest.raises(shoal.RunError, match='^learner={"batch_size": "none"}: '):
        shoal.train("cartpole_dqn", learner={"batch_size": None}, quiet=True)
    with pytest.raises(TypeError, match='give Task, and its arguments as environment={"keyword_arguments": '):
        shoal.train(functools.partial(Task, length=4), algorithm="dqn", quiet=True)
    tables = {"environment": {"id": "python:task:Task", "python_path": ["lib", "more"]}, "algorithm": {"name": "dqn"}}
    with pytest.raises(shoal.RunError, match=r'python_path = \["lib", "more"\]: expected folders separated by colons'):
        shoal.train(tables, quiet=True)


def test_a_value_that_begins_with_a_dash_is_taken_for_no_option(folder):
    with pytest.raises(shoal.RunError, match="'-1' for '--seed"):
        shoal.train("cartpole_dqn", seed=-1, quiet=True)
    run = shoal.train("cartpole_dqn", name="-x", run=SHORT, quiet=True)
    assert "-x" in run.record["name"]
    with pytest.raises(shoal.PolicyError, match="'-1' for '--seed"):
        shoal.evaluate(run.load(), seed=-1)


def test_an_interrupt_that_another_thread_receives_ends_the_run(folder):
    # Like a signal between the interpreter's check for signals and a call that waits: it does not interrupt the call.
    code = """
import signal, threading, time, shoal
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
run = shoal.start("cartpole_dqn", run={"stop_eval_return": "none", "stop_env_steps": 10**12}, quiet=True)
print("started", flush=True)
try:
    run.wait()
except KeyboardInterrupt:
    print(run.reason)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    parent.stdout.readline()
    # Until the parent waits for the run.
    time.sleep(1)
    parent.send_signal(signal.SIGINT)
    assert parent.communicate(timeout=WATCHDOG_S)[0] == "interrupted\n"


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_a_run_ends_with_the_process_that_started_it(folder, way):
    # The process that started the tests may ignore SIGINT, and the limit of the preset would end the run as well.
    code = """
import signal, shoal
signal.signal(signal.SIGINT, signal.default_int_handler)
print("started", flush=True)
shoal.train("cartpole_dqn", run={"stop_eval_return": "none", "stop_env_steps": 10**12}, quiet=True)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    parent.stdout.readline()
    wait_for("the run's processes", lambda: len(processes_in(folder)) > 3)
    parent.send_signal(way)
    parent.wait(WATCHDOG_S)
    wait_for("the end of all", lambda: not processes_in(folder))
    run_folder = next(
        path
        for path in (folder / "runs").iterdir()
        if path.is_dir() and not path.is_symlink() and "cartpole" in path.name
    )
    assert (run_folder / "weights/last.safetensors").exists(), "it ended in order"
    assert shoal.Run(run_folder).reason == ("interrupted" if way == signal.SIGINT else "terminated")


def test_a_killed_supervisor_is_reported_as_killed(folder):
    run = shoal.start("cartpole_dqn", run=ENDLESS, quiet=True)
    os.kill(run.pid, signal.SIGKILL)
    with pytest.raises(shoal.RunError, match="SIGKILL"):
        run.wait()


def test_a_run_ends_with_its_program_even_if_the_program_has_forked_others(folder):
    code = """
import multiprocessing, time, shoal
run = shoal.start("cartpole_dqn", run={"stop_eval_return": "none", "stop_env_steps": 10**12}, quiet=True)
worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
worker.start()
print(worker.pid, flush=True)
run.wait()
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait(WATCHDOG_S)
    wait_for("the end of the run", lambda: processes_in(folder) == [worker])
    os.kill(worker, signal.SIGKILL)


@pytest.mark.parametrize("delay_ms", range(0, 400, 50))
def test_a_program_that_ends_while_a_run_starts_leaves_none(folder, delay_ms):
    command = [sys.executable, "-m", "shoal", "train", "cartpole_dqn", "--set", "run.stop_eval_return=none"]
    environment = {**os.environ, "SHOAL_ENDS_WITH_STDIN": "1"}
    run = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    time.sleep(delay_ms / 1000)
    run.stdin.close()
    assert run.wait(WATCHDOG_S) in (128 + signal.SIGTERM, -signal.SIGTERM)


def test_what_an_environment_leaves_behind_is_not_waited_for(folder):
    (folder / "task.py").write_text(
        ENVIRONMENT.replace(
            "self.at = 0", "self.at = 0; import subprocess; self.left = subprocess.Popen(['sleep', '1000'])", 1
        )
    )
    sys.path.insert(0, str(folder))
    try:
        run = shoal.train("python:task:Corridor", algorithm="dqn", run={"stop_env_steps": 100}, quiet=True)
    finally:
        sys.path.remove(str(folder))
    left = processes_in(folder)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left and run.reason == "step limit"


def test_modules_are_looked_for_in_the_working_folder_and_not_beside_a_temporary_file(folder):
    (folder / "task.py").write_text(ENVIRONMENT)
    run = shoal.train("python:task:Corridor", algorithm="dqn", run={"stop_env_steps": 500}, quiet=True)
    assert f'python_path = "{folder}"' in (run.folder / "config.toml").read_text()
    tables = {"algorithm": {"name": "dqn"}, "run": {"stop_env_steps": 500}}
    run = shoal.train(tables, environment={"id": "python:task:Corridor"}, quiet=True)
    assert f'python_path = "{folder}"' in (run.folder / "config.toml").read_text()
    assert run.folder.name.split("-")[2] == "Corridor"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "true"),
        (np.float32(0.5), "0.5"),
        (1e-7, "1e-07"),
        (float("inf"), "inf"),
        (signal.SIGINT, "2"),
        (np.array([64, 32]), "[64, 32]"),
        (np.array([64]), "[64]"),
        ('a \N{ROCKET} "b"\x7f\n', '"a \N{ROCKET} \\"b\\"\\u007f\\n"'),
        ({"a b": (1, "c")}, '{"a b" = [1, "c"]}'),
    ],
)
def test_values_are_written_as_toml(value, written):
    from shoal._configuration import _toml

    assert _toml(value) == written
    tomllib.loads(f"value = {written}")


def test_only_the_newest_text_of_a_line_that_is_drawn_again_is_kept():
    from shoal.runs import _OwnRun

    run = object.__new__(_OwnRun)
    run._text = bytearray(b"training\n")
    for step in range(1000):
        run._keep(b"\r\x1b[2Kstep %d" % step)
        if step % 100 == 0:
            run._keep(b"\r\x1b[2Kan event\n\r\x1b[2Kstep %d" % step)
    assert run.text.replace("\r", "").splitlines() == ["training", *["an event"] * 10, "step 999"]


def test_a_failed_run_says_why(folder):
    (folder / "task.py").write_text(
        ENVIRONMENT.replace("self.at += 1", "self.at += 1; assert self.at < 9, 'too far'", 1)
    )
    with pytest.raises(shoal.RunError, match="AssertionError: too far"):
        shoal.train(
            "python:task:Corridor",
            algorithm="dqn",
            run={"stop_env_steps": 5000},
            machine={"max_restarts": 0},
            quiet=True,
        )


def test_a_run_that_failed_by_what_it_lost_says_that_and_not_why_it_ended(tmp_path):
    from shoal.runs import _OwnRun

    run = object.__new__(_OwnRun)
    run.folder = tmp_path
    ending = {"reason": "step limit", "summary": {"losses": ["the last weights, which could not be written"]}}
    (tmp_path / "run.json").write_text(json.dumps({"finished": ending}))
    assert run._why() == "the run ended (step limit) and has lost: the last weights, which could not be written"


def test_a_policy_is_evaluated_even_if_its_environment_prints_bytes_that_are_no_text(folder):
    (folder / "task.py").write_text(
        ENVIRONMENT.replace("self.at = 0", "self.at = 0; [os.write(output, b'caf\\xe9\\n') for output in (1, 2)]", 1)
    )
    run = shoal.train("python:task:Corridor", algorithm="dqn", run={"stop_env_steps": 500}, quiet=True)
    assert len(shoal.evaluate(run.load("last"), episodes=3).returns) == 3


def test_a_policy_is_evaluated_even_if_a_later_run_is_the_latest(folder):
    shoal.train("cartpole_dqn", run=SHORT, quiet=True)
    policy = shoal.load("runs/latest")
    shoal.train("acrobot_dqn", run=SHORT, quiet=True)
    assert shoal.evaluate(policy, episodes=3).return_mean > 0
    assert shoal.evaluate(policy.path, episodes=3).return_mean > 0


def test_a_preset_of_another_algorithm_is_not_used(folder):
    assert "cartpole_ppo" in shoal.train("CartPole-v1", algorithm="ppo", run=SHORT, quiet=True).text
    run = shoal.train("Acrobot-v1", algorithm="ppo", run=SHORT, quiet=True)
    assert "ppo on Acrobot-v1" in run.text and "Acrobot" in run.folder.name


def test_a_script_that_trains_when_it_is_imported_is_refused_at_once(folder):
    (folder / "task.py").write_text(
        ENVIRONMENT + "\nimport shoal\nshoal.train(Corridor, algorithm='dqn', quiet=True)\n"
    )
    result = subprocess.run(
        [sys.executable, "task.py"], capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert result.returncode == 1 and "if __name__" in result.stderr, result.stderr


def test_arguments_of_an_environment_are_a_dictionary(folder):
    (folder / "task.py").write_text(ENVIRONMENT + "\n    def __init__(self, length=1):\n        assert length == 4\n")
    run = shoal.train(
        "python:task:Corridor",
        algorithm="dqn",
        environment={"keyword_arguments": {"length": 4}, "evaluation_arguments": {"length": 4}},
        run={"stop_env_steps": 100},
        quiet=True,
    )
    assert run.reason == "step limit"


def test_dictionary_observations_are_flattened_as_in_the_run(folder):
    (folder / "task.py").write_text(
        ENVIRONMENT.replace("observation_space = ", "observation_space = gymnasium.spaces.Dict(a=")
        .replace("numpy.float32)\n    action_space", "numpy.float32))\n    action_space")
        .replace("return numpy.zeros(2, numpy.float32), {}", "return {'a': numpy.zeros(2, numpy.float32)}, {}")
        .replace(
            "return numpy.full(2, self.at / 10, numpy.float32),",
            "return {'a': numpy.full(2, self.at / 10, numpy.float32)},",
        )
    )
    policy = shoal.train("python:task:Corridor", algorithm="dqn", run={"stop_env_steps": 500}, quiet=True).load("last")
    sys.path.insert(0, str(folder))
    try:
        import task
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("task", None)
    assert len(shoal.evaluate(policy, task.Corridor(), episodes=2).returns) == 2
    with pytest.raises(ValueError, match=r"gymnasium\.spaces\.utils\.flatten\(environment\.observation_space"):
        policy({"a": np.zeros(2)})
    with pytest.raises(ValueError, match="at least one"):
        shoal.evaluate(policy, task.Corridor(), episodes=0)


def test_a_run_is_stopped_by_a_program_that_blocks_signals(folder):
    code = """
import signal, shoal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print(shoal.start("cartpole_dqn", run={"stop_eval_return": "none", "stop_env_steps": 10**12}, quiet=True).stop().reason)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert result.stdout == "interrupted\n", result.stderr


def test_a_run_goes_on_if_its_output_cannot_be_shown(folder, monkeypatch):
    def fail(_=None):
        raise ValueError("I/O operation on closed file")

    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=fail, flush=fail, isatty=bool))
    assert shoal.train("cartpole_dqn", run=SHORT).reason == "step limit"


def test_the_progress_of_a_run_fits_the_terminal_that_shows_it(folder):
    code = f"""
import sys, shoal
run = shoal.start("cartpole_dqn", run={ENDLESS})
sys.stdin.read()
run.stop()
"""
    ours, theirs = pty.openpty()

    def resize(columns):
        ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    shown = bytearray()

    def drawn():
        """The lines that were drawn again, each without its colours."""
        shown.extend(os.read(ours, 1 << 16))
        lines = re.findall(rb"\x1b\[2K([^\r\n]+)(?=\r\x1b\[2K)", shown)
        return [re.sub(r"\x1b\[[0-9;]*m", "", line.decode(errors="replace")) for line in lines]

    resize(60)
    # Its standard output is no terminal.
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": theirs}
    with subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TERM": "xterm"}, **streams) as process:
        os.close(theirs)
        lines = wait_for("progress", lambda: len(lines := drawn()) > 2 and lines)
        resize(30)
        wait_for("progress in a narrower window", lambda: len(drawn()[-1]) < 30)
        os.close(ours)
    assert process.returncode == 0 and max(map(len, lines)) < 60, lines


def test_the_child_of_a_fork_sees_the_run_and_does_not_end_it(folder):
    run = shoal.start("cartpole_dqn", run=ENDLESS, quiet=True)
    child = os.fork()
    if child == 0:
        try:
            assert run.is_running
            with pytest.raises(shoal.RunError, match="another process"):
                run.stop()
            os._exit(0)
        except BaseException:  # noqa: BLE001 (told to the parent by the exit status)
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run.is_running and run.stop().reason == "interrupted"


@pytest.mark.parametrize("quiet", [True, False])
def test_a_closed_standard_error_keeps_no_run_from_training(folder, monkeypatch, quiet):
    with open(os.devnull, "w") as closed:
        pass
    monkeypatch.setattr(sys, "stderr", closed)
    assert shoal.train("cartpole_dqn", run=SHORT, quiet=quiet).reason == "step limit"


@pytest.mark.parametrize(
    "what",
    [
        'task.Corridor, algorithm="dqn", environment={"python_path": "lib"}',
        '"cartpole_dqn", environment={"id": task.Corridor, "python_path": "lib"}',
        '{"environment": {"id": task.Corridor, "python_path": "lib"}, "algorithm": {"name": "dqn"}}',
        '{"environment": {"id": task.Corridor}, "algorithm": {"name": "dqn"}}, environment={"python_path": "lib"}',
    ],
)
def test_python_path_is_added_to_the_folder_of_a_class(folder, what):
    (folder / "tasks").mkdir()
    (folder / "lib").mkdir()
    (folder / "lib/lengths.py").write_text("LENGTH = 7\n")
    (folder / "tasks/task.py").write_text(
        ENVIRONMENT.replace("self.at = 0", "import lengths; self.at, self.length = 0, lengths.LENGTH").replace(
            "self.at == 10", "self.at == self.length"
        )
    )
    code = f"""
import sys
sys.path.append("tasks")
import task, shoal
print(shoal.train({what}, run={{"stop_env_steps": 500}}, quiet=True).reason)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert result.stdout == "step limit\n", result.stderr
    written = next((folder / "runs").glob("*/config.toml")).read_text()
    assert f'python_path = "{folder}/tasks:{folder}/lib"' in written


@pytest.mark.parametrize(
    ("link", "target", "module"), [("task.py", "store/task_2.py", "task"), ("tasks", "store", "tasks.task_2")]
)
def test_a_class_whose_module_or_package_is_a_link_is_looked_for_beside_the_link(folder, link, target, module):
    (folder / "store").mkdir()
    (folder / "store/task_2.py").write_text("class Task:\n    pass\n")
    (folder / "work").mkdir()
    (folder / "work" / link).symlink_to(folder / target)
    code = f"""
import sys
from shoal._configuration import command_line
sys.path.append("work")
import {module}
print(command_line({module}.Task, "dqn", {{}})[0])
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert f"'python:{module}:Task'" in result.stdout, result.stderr
    assert f'environment.python_path="{folder}/work"' in result.stdout


def test_python_path_is_used_for_a_class_of_a_script(folder):
    (folder / "lib").mkdir()
    (folder / "lib/lengths.py").write_text("LENGTH = 7\n")
    task = ENVIRONMENT.replace("self.at = 0", "import lengths; self.at, self.length = 0, lengths.LENGTH")
    (folder / "script.py").write_text(
        task
        + """
if __name__ == "__main__":
    import shoal
    limit = {"stop_env_steps": 500}
    print(shoal.train(Corridor, algorithm="dqn", environment={"python_path": "lib"}, run=limit, quiet=True).reason)
"""
    )
    result = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert result.stdout == "step limit\n", result.stderr


def test_a_class_in_a_folder_that_is_run_is_trained_in(folder):
    (folder / "app").mkdir()
    (folder / "app/__main__.py").write_text(
        ENVIRONMENT
        + """
if __name__ == "__main__":
    import shoal
    print(shoal.train(Corridor, algorithm="dqn", run={"stop_env_steps": 500}, quiet=True).reason)
"""
    )
    result = subprocess.run([sys.executable, "app"], capture_output=True, text=True, timeout=WATCHDOG_S, check=False)
    assert result.stdout == "step limit\n", result.stderr


def test_a_class_in_a_script_without_the_ending_py_is_refused_with_the_next_step(folder):
    (folder / "task").write_text(
        ENVIRONMENT + "\nif __name__ == '__main__':\n    import shoal\n    shoal.train(Corridor, algorithm='dqn')\n"
    )
    result = subprocess.run([sys.executable, "task"], capture_output=True, text=True, timeout=WATCHDOG_S, check=False)
    assert "TypeError" in result.stderr and "does not end in .py: rename the file" in result.stderr, result.stderr
