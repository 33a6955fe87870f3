"""What somebody with Python alone goes through: from `pip install` to a trained CartPole and beyond.

    cargo xtask wheel && python3 benches/scripts/newcomer.py target/wheels/*.whl
    python3 benches/scripts/newcomer.py --peers target/wheels/*.whl     # beside Stable-Baselines3 and Sample Factory

Everything happens in an empty folder that is its own HOME. On its PATH there is a Python interpreter and nothing else: no
compiler, no cargo. Prints wall time and megabytes of each step, and fails if a step fails.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

NOTEBOOK = """
import shoal
run = shoal.train("cartpole_dqn", seed=2)
run.plot()
"""

# The settings of RL Zoo for DQN on CartPole-v1: exploration falls over 0.16 of its 50,000 steps, though there may be more here.
# The library's own callback ends training with the first evaluation that reaches 475.
STABLE_BASELINES3 = """
import gymnasium
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import EvalCallback, StopTrainingOnRewardThreshold
from stable_baselines3.common.monitor import Monitor
stop = StopTrainingOnRewardThreshold(reward_threshold=475, verbose=1)
callback = EvalCallback(Monitor(gymnasium.make("CartPole-v1")), callback_on_new_best=stop, eval_freq=2000, n_eval_episodes=20, verbose=0)
model = DQN("MlpPolicy", "CartPole-v1", learning_rate=2.3e-3, batch_size=64, buffer_size=100_000, learning_starts=1000, gamma=0.99,
            target_update_interval=10, train_freq=256, gradient_steps=128, exploration_fraction=0.16 * 50_000 / 200_000,
            exploration_final_eps=0.04, policy_kwargs={"net_arch": [256, 256]}, seed=1)
model.learn(200_000, callback=callback)
print("best mean of 20 episodes:", callback.best_mean_reward, "after", model.num_timesteps, "steps")
"""


class Newcomer:
    """An empty folder with an interpreter, and the steps taken in it so far."""

    def __init__(self, folder):
        self.folder = Path(folder)
        (self.folder / "bin").mkdir()
        (self.folder / "bin/python3").symlink_to(sys.executable if sys.prefix == sys.base_prefix else sys._base_executable)
        (self.folder / "runtime").mkdir(mode=0o700)
        self.variables = {
            "HOME": str(self.folder), "PATH": str(self.folder / "bin"), "XDG_RUNTIME_DIR": str(self.folder / "runtime"), "LANG": "C.UTF-8",
        }
        # These say how this machine reaches the package index.
        self.variables |= {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_")) or name.lower().endswith("_proxy")
        }
        self.steps = []

    def step(self, name, *command, expected=0):
        """Run a command, note how long it took and how much it left on the disk, and return what it printed."""
        before, start = self.bytes(), time.monotonic()
        result = subprocess.run(command, cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False)
        self.note(name, time.monotonic() - start, self.bytes() - before)
        if result.returncode != expected:
            sys.exit(f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
        return result.stdout, result.stderr

    def pip(self, name, programs, *packages):
        """Install packages, none of them from a cache, with the `pip` of a virtual environment's folder of programs."""
        self.step(name, str(programs / "pip"), "install", "--no-cache-dir", *packages)

    @contextlib.contextmanager
    def started(self, *command):
        """A process that runs beside the next steps and is ended after them, also if one of them fails."""
        process = subprocess.Popen(command, cwd=self.folder, env=self.variables, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()

    def note(self, name, seconds, size):
        print(f"{name:<58}{seconds:>9.2f} s{size / 1e6:>10.1f} MB", flush=True)
        self.steps.append({"step": name, "seconds": seconds, "megabytes": size / 1e6})

    def bytes(self):
        return sum(path.lstat().st_size for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink())

    def environment(self, name):
        """Makes a virtual environment and returns its folder of programs."""
        self.step(f"{name}: python3 -m venv", "python3", "-m", "venv", str(self.folder / name))
        return self.folder / name / "bin"


def look_and_kill(newcomer, program, run):
    """Inspects a run, kills one of its actors, and inspects it again."""
    seen, _ = newcomer.step("shoal: inspect", program, "inspect", run, "--json")
    processes = [process for process in json.loads(seen)["processes"] if process["state"] == "live"]
    assert any(process["role"] == "attached_actor" for process in processes), "inspect does not list the attached actor"
    victim = next(process["pid"] for process in processes if process["role"] == "actor")
    os.kill(victim, signal.SIGKILL)
    time.sleep(2)
    seen, _ = newcomer.step("shoal: inspect after kill -9 of an actor", program, "inspect", run, "--json")
    processes = json.loads(seen)["processes"]
    actors = [process for process in processes if process["role"] == "actor" and process["state"] == "live"]
    assert [actor["pid"] for actor in actors] != [victim] and actors, "the killed actor was not replaced"


def shoal(newcomer, wheel):
    programs = newcomer.environment("shoal")
    newcomer.pip("shoal: pip install", programs, str(wheel))
    program = str(programs / "shoal")
    _, said = newcomer.step("shoal: train cartpole_dqn, until it is confirmed", program, "train", "cartpole_dqn")
    print(textwrap.indent("\n".join(said.splitlines()[-9:-4]), "    "))
    summary = json.loads((newcomer.folder / "runs/latest/run.json").read_text())["finished"]["summary"]
    print(f"    from the supervisor's start to the first environment step: {summary['wall_s'] - summary['training_s']:.2f} s")
    newcomer.step("shoal: evaluate, 100 episodes", program, "evaluate")
    newcomer.step("shoal: presets", program, "presets")

    begin = time.monotonic()
    with newcomer.started(program, "train", "cartpole_dqn", "--set", "run.stop_eval_return=none") as supervisor:
        time.sleep(2)
        with newcomer.started(program, "attach", str(supervisor.pid)) as attached:
            time.sleep(2)
            look_and_kill(newcomer, program, str(supervisor.pid))
            supervisor.send_signal(signal.SIGINT)
            assert supervisor.wait(30) == 130 and attached.wait(30) == 0
    newcomer.note("shoal: train, attach, kill, stop", time.monotonic() - begin, 0)
    assert not list((newcomer.folder / "runtime/shoal").iterdir()), "the run left entries in the registry"

    script = "import shoal; run = shoal.train('CartPole-v1', quiet=True); print(shoal.evaluate(run.load(), episodes=100))"
    said, _ = newcomer.step("shoal: the same from Python, with its evaluation", str(programs / "python"), "-c", script)
    print(f"    {said.strip()[-90:]}")
    newcomer.pip("shoal: pip install gymnasium", programs, "gymnasium[classic-control]")
    script = "import shoal; print(shoal.train('gymnasium:CartPole-v1', algorithm='dqn', run={'stop_env_steps': 20000}, quiet=True))"
    newcomer.step("shoal: 20,000 steps of Gymnasium's CartPole", str(programs / "python"), "-c", script)
    newcomer.pip("shoal: pip install of what a notebook needs", programs, "nbclient", "ipykernel", "matplotlib")
    cell = {"cell_type": "code", "execution_count": None, "id": "one", "metadata": {}, "outputs": [], "source": NOTEBOOK}
    (newcomer.folder / "one.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    newcomer.step("shoal: a notebook that trains and plots", str(programs / "jupyter"), "execute", "--inplace", "one.ipynb")
    outputs = json.loads((newcomer.folder / "one.ipynb").read_text())["cells"][0]["outputs"]
    kinds = {kind for output in outputs for kind in output.get("data", {"text": None})}
    assert {"text", "image/png"} <= kinds, f"the notebook shows only {kinds}"


def peers(newcomer):
    programs = newcomer.environment("stable-baselines3")
    newcomer.pip("stable-baselines3: pip install", programs, "stable-baselines3")
    said, _ = newcomer.step("stable-baselines3: DQN on CartPole-v1 to 475", str(programs / "python"), "-c", STABLE_BASELINES3)
    print(f"    {said.strip().splitlines()[-1]}")
    programs = newcomer.environment("sample-factory")
    newcomer.pip("sample-factory: pip install", programs, "sample-factory", "gymnasium[classic-control]")
    newcomer.step(
        "sample-factory: APPO on CartPole-v1, 200,000 steps", str(programs / "python"), "-m", "sf_examples.train_gym_env",
        "--env=CartPole-v1", "--experiment=one", "--train_for_env_steps=200000", "--device=cpu", "--num_workers=2",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--peers", action="store_true", help="the same with Stable-Baselines3 and Sample Factory")
    parser.add_argument("--json", type=Path, help="write the steps there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        newcomer = Newcomer(folder)
        shoal(newcomer, arguments.wheel.resolve())
        if arguments.peers:
            peers(newcomer)
        if arguments.json:
            arguments.json.write_text(json.dumps(newcomer.steps, indent=1))


if __name__ == "__main__":
    main()
