"""One run of one library, in the virtual environment: how fast it goes, or how long it takes to a goal. Prints one line of JSON."""

import json
import os
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

EVALUATED_TOGETHER = 10


def processor_seconds(root=None):
    """Of a process (this one unless said) and all that it has started, living ones and those it has waited for."""
    ticks, parents, seconds = os.sysconf("SC_CLK_TCK"), {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            seconds[int(folder.name)] = sum(map(int, fields[11:15])) / ticks
    ours = {root or os.getpid()}
    while True:
        found = {pid for pid, parent in parents.items() if parent in ours} - ours
        if not found:
            return sum(seconds[pid] for pid in ours)
        ours |= found


def rates(trainer, seconds):
    """Steps and updates over `seconds`, once it learns and what is compiled has been compiled."""
    while trainer.updates < 50:
        trainer.advance(100)
    steps, updates, cpu, wall = trainer.env_steps, trainer.updates, processor_seconds(), time.perf_counter()
    while time.perf_counter() - wall < seconds:
        trainer.advance(50)
    wall_s = time.perf_counter() - wall
    return {
        "env_steps_per_s": (trainer.env_steps - steps) / wall_s, "updates_per_s": (trainer.updates - updates) / wall_s,
        "samples_per_s": (trainer.updates - updates) * trainer.batch_size / wall_s, "cores": (processor_seconds() - cpu) / wall_s,
    }


def to_goal(trainer, environment, goal, every, limit_s):
    """Wall time and processor time until fresh episodes confirm `goal`. Routine evaluations do not count, confirmations do."""
    from confirmation import Confirmation
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    confirmation, environments = Confirmation(environment, goal), make_vec_env(environment, n_envs=EVALUATED_TOGETHER)
    started, cpu = time.perf_counter(), processor_seconds()
    apart_s = apart_cpu_s = 0.0
    while time.perf_counter() - started - apart_s < limit_s:
        trainer.advance(every)
        at, cpu_at = time.perf_counter(), processor_seconds()
        mean, _ = evaluate_policy(trainer, environments, n_eval_episodes=EVALUATED_TOGETHER, warn=False)
        apart_s, apart_cpu_s = apart_s + time.perf_counter() - at, apart_cpu_s + processor_seconds() - cpu_at
        if mean >= goal and confirmation(trainer):
            break
    return {
        "confirmed": confirmation.confirmed, "mean": confirmation.mean, "wall_s": time.perf_counter() - started - apart_s,
        "cpu_s": processor_seconds() - cpu - apart_cpu_s, "env_steps": trainer.env_steps, "updates": trainer.updates,
    }


def main():
    import trainers

    job = json.loads(sys.argv[1])
    try:
        trainer = trainers.make(job["library"], job["algorithm"], job["environment"], job["setting"], job["seed"])
    except NotImplementedError as error:
        return print(json.dumps({"lacks": str(error)}))
    if "goal" in job:
        found = to_goal(trainer, job["environment"], job["goal"], job["every"], job["limit_s"])
    else:
        found = rates(trainer, job["seconds"])
    trainer.close()
    print(json.dumps({**found, "version": trainer.VERSION}))


if __name__ == "__main__":
    main()
