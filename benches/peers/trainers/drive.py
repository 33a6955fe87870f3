"""One run of one library, in the virtual environment: its rates, or its time to a goal. Prints one line of JSON."""

import json
import os
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

EVALUATED_TOGETHER = 10


def processor_seconds(root=None):
    """Processor time of the process `root` (by default this one) and its descendants, both living and waited for."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents, seconds = {}, {}
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
    """Rates over `seconds`, measured once the trainer learns and has compiled its updates."""
    while trainer.updates < 50:
        trainer.advance(100)
    steps_before, updates_before = trainer.env_steps, trainer.updates
    cpu_before = processor_seconds()
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        trainer.advance(50)
    wall_s = time.perf_counter() - started
    updates = trainer.updates - updates_before
    return {
        "env_steps_per_s": (trainer.env_steps - steps_before) / wall_s, "updates_per_s": updates / wall_s,
        "samples_per_s": updates * trainer.batch_size / wall_s, "cores": (processor_seconds() - cpu_before) / wall_s,
    }


def to_goal(trainer, environment, goal, every, limit_s):
    """Wall time and processor time until fresh episodes confirm `goal`. Routine evaluations do not count, confirmations do."""
    from confirmation import Confirmation
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    confirmation = Confirmation(environment, goal)
    environments = make_vec_env(environment, n_envs=EVALUATED_TOGETHER)
    started, cpu_before = time.perf_counter(), processor_seconds()
    evaluation_s = evaluation_cpu_s = 0.0
    while time.perf_counter() - started - evaluation_s < limit_s:
        trainer.advance(every)
        at, cpu_at = time.perf_counter(), processor_seconds()
        mean, _ = evaluate_policy(trainer, environments, n_eval_episodes=EVALUATED_TOGETHER, warn=False)
        evaluation_s += time.perf_counter() - at
        evaluation_cpu_s += processor_seconds() - cpu_at
        if mean >= goal and confirmation(trainer):
            break
    return {
        "confirmed": confirmation.confirmed, "mean": confirmation.mean, "wall_s": time.perf_counter() - started - evaluation_s,
        "cpu_s": processor_seconds() - cpu_before - evaluation_cpu_s, "env_steps": trainer.env_steps, "updates": trainer.updates,
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
