"""Runs that this process has not started: `shoal.Run(folder)`."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from command_line import WATCHDOG_S, command, run, wait_for

import shoal

PRESET = ("train", "cartpole_dqn", "--set", "run.stop_eval_return=none", "--set")


@pytest.fixture
def started(folder):
    """The process of a run that goes on until it is stopped, which this program has not started as a run of its own."""
    # Nobody else would end it if pytest had to give up, or was killed.
    limits = ("run.stop_env_steps=1_000_000_000_000", "--set", "run.stop_wall_s=600")
    process = subprocess.Popen(command(*PRESET, *limits), stderr=subprocess.DEVNULL)
    try:
        wait_for("the run", lambda: "env_steps" in run("inspect", str(process.pid), "--json").stdout)
        yield process
    finally:
        process.kill()
        process.wait(WATCHDOG_S)


def test_a_run_that_the_command_has_trained_is_found_by_its_folder(folder):
    assert run(*PRESET, "run.stop_env_steps=2000").returncode == 0
    found = shoal.Run()
    assert found.folder == (folder / "runs/latest").resolve() and not found.is_running
    assert (found.reason, found.wait().reason, found.stop().reason) == ("step limit",) * 3
    assert found.summary["env_steps"] >= 2000 and "stopped" in found.text
    lines = list(found.metrics())
    assert lines[-1]["env_steps"] >= 2000 and lines == list(found.metrics(follow=True))
    assert found.load("last").environment == "CartPole-v1"
    with pytest.raises(shoal.RunError, match="has ended"):
        found.inspect()
    with pytest.raises(shoal.RunError, match="name one in it, such as runs/latest"):
        shoal.Run("runs")
    with pytest.raises(shoal.RunError, match="absent"):
        shoal.Run("absent")


def test_a_run_that_is_sent_to_another_process_is_the_one_in_its_folder_there(folder):
    own = shoal.train("cartpole_dqn", run={"stop_env_steps": 2000}, quiet=True)
    sent = pickle.loads(pickle.dumps(own))
    assert type(sent) is shoal.Run
    assert (sent.folder, sent.summary) == (own.folder.resolve(), own.summary)


def test_metrics_are_counted_without_being_parsed_and_an_item_without_the_others(tmp_path):
    from shoal.metrics import Metrics

    (tmp_path / "metrics.jsonl").write_text('no JSON\n{"updates": 1}\n{"updates": 2}\n{"updates"')
    metrics = Metrics(SimpleNamespace(folder=tmp_path), follow=False)
    assert (len(metrics), metrics[-1], metrics[1:]) == (3, {"updates": 2}, [{"updates": 1}, {"updates": 2}])


def test_what_a_run_has_written_is_read_as_utf8_whatever_the_locale(tmp_path):
    (tmp_path / "run.json").write_text('{"working_directory": "/home/jürgen"}', encoding="utf-8")
    (tmp_path / "run.log").write_text("jürgen", encoding="utf-8")
    code = "import pathlib, shoal; run = object.__new__(shoal.Run); run.folder = pathlib.Path(); "
    code += "print(ascii((run.record, run.text)))"
    variables = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=variables, capture_output=True, check=True)
    assert told.stdout.decode().strip() == ascii(({"working_directory": "/home/jürgen"}, "jürgen"))


def test_a_run_that_has_ended_is_resumed_with_changes(folder):
    assert run(*PRESET, "run.stop_env_steps=2000").returncode == 0
    found = shoal.Run()
    with pytest.raises(shoal.RunError, match="another replay.min_size"):
        found.resume(replay={"min_size": 500}, quiet=True)
    with pytest.raises(shoal.RunError, match=r'^learner=\{"rate": 0.5\}: '):
        found.resume(learner={"rate": 0.5}, quiet=True)
    longer = found.resume(run={"stop_env_steps": 2500}, learner={"learning_rate": 2e-4}, quiet=True).wait()
    assert (longer.folder.resolve(), longer.reason) == (found.folder, "step limit")
    assert longer.summary["env_steps"] >= 2500
    assert "learning_rate = 0.0002" in (found.folder / "config.toml").read_text()
    assert len(list((folder / "runs").glob("*-seed*"))) == 1


def test_a_run_of_another_process_is_watched_and_stopped(started):
    found = shoal.Run("runs/latest")
    assert found.is_running and found.pid == started.pid and found.reason is None
    assert "running" in repr(found)
    line = next(line for line in found.metrics(follow=True) if line["env_steps"] > 0)
    assert found.inspect()["run"]["env_steps"] >= line["env_steps"]
    with pytest.raises(TimeoutError):
        found.wait(timeout=0.1)
    assert found.stop().reason == "interrupted" and not found.is_running
    assert (found.folder / "weights/last.safetensors").exists()


def test_a_run_that_is_not_announced_here_goes_on_and_is_waited_for(started, folder, monkeypatch):
    found = shoal.Run()
    # What is there is no folder: there can be no registry.
    (folder / "nowhere").mkdir()
    (folder / "nowhere/shoal").touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "nowhere"))
    assert found.is_running
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "elsewhere"))
    assert found.is_running and "running" in repr(found)
    with pytest.raises(TimeoutError):
        found.wait(timeout=0.1)
    for ask in (found.stop, found.inspect):
        with pytest.raises(shoal.RunError, match="not announced here"):
            ask()
    to_come = iter(found.metrics(follow=True))
    lines = [next(to_come)]
    started.send_signal(signal.SIGINT)
    assert found.wait().reason == "interrupted" and not found.is_running
    assert [*lines, *to_come] == list(found.metrics())


def test_a_run_whose_supervisor_was_killed_neither_goes_on_nor_has_ended(started):
    found = shoal.Run()
    os.kill(started.pid, signal.SIGKILL)
    started.wait(WATCHDOG_S)
    for ask in (found.wait, found.stop, found.inspect):
        with pytest.raises(shoal.RunError, match="killed"):
            ask()
    assert not found.is_running and found.reason is None
    assert repr(found).endswith("(killed)>")


def test_a_run_whose_folder_was_removed_is_shown_all_the_same(folder):
    assert run(*PRESET, "run.stop_env_steps=2000").returncode == 0
    found = shoal.Run()
    assert repr(found).endswith("(ended: step limit)>")
    shutil.rmtree(found.folder)
    assert repr(found).endswith("(No such file or directory)>")


def test_a_copy_of_a_folder_stops_no_run(started):
    original = shoal.Run()
    os.mkdir("copy")
    for name in ("config.toml", "run.json"):
        shutil.copy(original.folder / name, "copy")
    copy = shoal.Run("copy")
    with pytest.raises(shoal.RunError, match="copy of its folder"):
        copy.stop()
    assert original.is_running and original.stop().reason == "interrupted"
