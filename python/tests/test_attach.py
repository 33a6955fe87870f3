"""Joining the replay of a running supervisor."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SUPERVISOR = TARGET / "debug/supervisor"

# In a process of its own, whose registry of runs is that of the test.
GUEST = """
import sys
import numpy as np
import shoal

replay = shoal.Replay.attach(int(sys.argv[1]))
batch = replay.sample(32, timeout=60)
assert batch["observation"].shape == (32, 4), batch
assert np.isfinite(batch.weights).all() and batch.weights.max() == 1.0
replay.update_priorities(batch, np.ones(32), stale="ignore")
inserted = replay.inserted
assert len(replay.add({name: values[:4] for name, values in batch.items()}, timeout=60)) == 4
assert replay.inserted >= inserted + 4
for refused in (replay.clear, lambda: replay.save("replay")):
    try:
        refused()
    except shoal.ReplayError as error:
        assert "supervisor" in str(error), error
    else:
        raise AssertionError("a guest has changed the replay of a run")
"""


@pytest.mark.skipif(not SUPERVISOR.exists(), reason=f"no supervisor in {SUPERVISOR}; `cargo build` makes it")
def test_a_python_process_reads_from_a_run_and_adds_to_it(tmp_path):
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    settings = [f'run.folder="{tmp_path}/runs"', "run.stop_env_steps=1_000_000_000", 'run.stop_eval_return="none"']
    command = [
        SUPERVISOR,
        ROOT / "configs/cartpole_dqn.toml",
        *(word for value in settings for word in ("--set", value)),
    ]
    with (
        open(tmp_path / "output", "w") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=output) as run,
    ):
        try:
            guest = None
            for _ in range(300):
                guest = subprocess.run(
                    [sys.executable, "-c", GUEST, str(run.pid)],
                    check=False,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=100,
                )
                # The run may not have announced itself yet.
                if not re.search(r"no run|not found|no supervisor", guest.stderr) or run.poll() is not None:
                    break
            assert guest.returncode == 0, guest.stderr + (tmp_path / "output").read_text()
            assert run.poll() is None, "the run has ended"
        finally:
            run.terminate()
    # 128 and the number of the signal: it ended early, and in good order.
    assert run.returncode == 128 + signal.SIGTERM
    assert not [name for name in os.listdir("/dev/shm") if f"-{run.pid}-" in name]
