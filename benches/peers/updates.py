#!/usr/bin/env python3
"""Updates per processor-second beside Stable-Baselines3 and sbx: SAC and TD3 with the shapes of HalfCheetah, DQN with those of
Atari (four frames of 84 x 84 bytes, six actions).

Networks are equal (256-256; for DQN the convolutions of Mnih et al. 2015 and 512), and so are batches. A library makes
nothing but updates: sampling from a filled replay, losses, gradients, Adam, target networks. Shoal's figure is that of a
whole learner (sampling, priorities and publication included) whose actor steps once per thousand updates. Time is processor
time of all threads of the process; every library is bound to one core. Libraries take turns, batch size by batch size. DQN
is compared with Stable-Baselines3 alone: sbx has no convolutions for it.

With `--device cuda:0` the learners of both compute on that device, wall time counts, and the library is not bound to a core.
sbx is left out then, because its JAX would need a GPU build of its own.

The first start makes a virtual environment beside this file (git-ignored) and installs requirements.txt into it.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "scripts")]
import peers  # noqa: E402
import runs  # noqa: E402

OBSERVATIONS, ACTIONS, FRAMES = 17, 6, (4, 84, 84)
ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


class Case:
    """What an algorithm is measured with: Shoal's preset and overrides, the capacity of all replays, and the libraries."""

    def __init__(self, config, capacity, overrides=(), libraries=("sb3", "sbx")):
        self.config = runs.ROOT / "configs" / config
        self.capacity = capacity
        self.overrides = overrides
        self.libraries = libraries


CASES = {
    "td3": Case("halfcheetah_sac.toml", 10_000),
    "sac": Case("halfcheetah_sac.toml", 10_000),
    "dqn": Case("rally_dqn.toml", 4_000, [
        'environment.id="atari:Pong"', "network.convolutions=[[32,8,4],[64,4,2],[64,3,1]]", "network.hidden=[512]",
        "network.dueling=false", "algorithm.double=false",
    ], ["sb3"]),
}


def peer(library, name, batch_size, seconds, device):
    """One measurement of a library, in the virtual environment."""
    if device == "cpu":
        # Before an import counts the cores: sbx takes all that it finds, whatever the environment variables say.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import gymnasium
    import numpy

    pixels = name == "dqn"
    capacity = CASES[name].capacity

    class Shaped(gymnasium.Env):
        if pixels:
            observation_space, action_space = gymnasium.spaces.Box(0, 255, FRAMES, numpy.uint8), gymnasium.spaces.Discrete(ACTIONS)
        else:
            observation_space = gymnasium.spaces.Box(-numpy.inf, numpy.inf, (OBSERVATIONS,), numpy.float32)
            action_space = gymnasium.spaces.Box(-1, 1, (ACTIONS,), numpy.float32)

        def reset(self, *, seed=None, options=None):
            return numpy.zeros(self.observation_space.shape, self.observation_space.dtype), {}

        def step(self, action):
            return self.reset()[0], 0.0, False, False, {}

    if library == "sb3":
        import stable_baselines3 as algorithms
        import torch

        torch.set_num_threads(1)
        extra = {"device": device}
    else:
        import sbx as algorithms

        extra = {}
    # The network of Stable-Baselines3's CnnPolicy has the convolutions and the 512 units already.
    layers = [] if pixels else [256, 256]
    model = getattr(algorithms, name.upper())(
        "CnnPolicy" if pixels else "MlpPolicy", Shaped(), batch_size=batch_size, buffer_size=capacity, learning_rate=3e-4, seed=1,
        policy_kwargs={"net_arch": layers}, **extra,
    )
    model._setup_learn(1)
    random = numpy.random.default_rng(1)
    for _ in range(capacity):
        if pixels:
            observation, following = random.integers(0, 256, (2, 1, *FRAMES), numpy.uint8)
            action = random.integers(0, ACTIONS, (1, 1))
        else:
            observation, following = random.normal(size=(2, 1, OBSERVATIONS)).astype(numpy.float32)
            action = random.uniform(-1, 1, (1, ACTIONS)).astype(numpy.float32)
        model.replay_buffer.add(observation, following, action, random.normal(size=1), numpy.zeros(1), [{}])
    steps = 8 if pixels else max(8, 2048 // batch_size)
    for _ in range(2):
        model.train(steps, batch_size)
    updates, cpu, wall = 0, time.process_time(), time.perf_counter()
    while time.perf_counter() - wall < seconds:
        model.train(steps, batch_size)
        updates += steps
    print(json.dumps({
        "version": algorithms.__version__, "per_cpu_s": updates / (time.process_time() - cpu),
        "per_wall_s": updates / (time.perf_counter() - wall),
    }))


def ours(arguments, name, batch_size, seconds):
    """Updates of a learner per second of its processor time; its actor steps once per thousand updates."""
    case = CASES[name]
    overrides = [
        f"algorithm.name={name}", f"learner.batch_size={batch_size}", f"replay.capacity={case.capacity}",
        f"replay.min_size={case.capacity}", f"replay.samples_per_insert={1000 * batch_size}", "replay.error_band=none",
        f"actor.random_steps={case.capacity}", f"learner.device={arguments.device}", *case.overrides, *arguments.set,
        *runs.FOREVER, "run.metrics_interval_s=0.1",
    ]
    with runs.Run(arguments.supervisor, case.config, overrides) as run:
        run.wait_until("updates", 16)
        rate, cpu = runs.watch(run, seconds)
    return {"per_cpu_s": rate("updates") / cpu[1], "per_wall_s": rate("updates")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--batches", type=int, nargs="*", help="default: 64 256 1024 4096, and for dqn 32 64 128 256")
    parser.add_argument("--seconds", type=float, default=6, help="per measurement")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--out")
    parser.add_argument("--device", default="cpu", help="where learners compute, for instance cuda:0")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for Shoal, for instance learner.prefetch=true")
    parser.add_argument("--python", help="an interpreter that has the libraries, instead of a virtual environment of their own")
    parser.add_argument("--peer", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        library, name, batch_size, seconds, device = arguments.peer
        return peer(library, name, int(batch_size), float(seconds), device)
    on_cpu = arguments.device == "cpu"
    measure, unit = ("per_cpu_s", "processor-second") if on_cpu else ("per_wall_s", f"second of wall time on {arguments.device}")
    interpreter = arguments.python or peers.python()
    rows, versions = [], {}

    def other(library, name, batch_size):
        job = [library, name, batch_size, arguments.seconds, arguments.device]
        found = peers.answer(interpreter, __file__, "--peer", *job, env={**os.environ, **ONE_THREAD})
        versions[library] = found["version"]
        return found

    for name in arguments.algorithms:
        libraries = [library for library in CASES[name].libraries if on_cpu or library != "sbx"]
        for batch_size in arguments.batches or ([32, 64, 128, 256] if name == "dqn" else [64, 256, 1024, 4096]):
            found = {who: [] for who in ("Shoal", *libraries)}
            for _ in range(arguments.repetitions):
                found["Shoal"].append(ours(arguments, name, batch_size, arguments.seconds))
                for library in libraries:
                    found[library].append(other(library, name, batch_size))
            median = {who: statistics.median(one[measure] for one in all_of) for who, all_of in found.items()}
            best = max(median[library] for library in libraries)
            rows.append({
                "algorithm": name, "batch": batch_size, **{who: round(value, 1) for who, value in median.items()},
                "ratio to the best": round(median["Shoal"] / best, 2),
            })
            print(runs.table([rows[-1]]), flush=True)
    print(f"\nupdates per {unit}, medians of {arguments.repetitions}\n{runs.table(rows)}\n{versions} {runs.machine()}")
    runs.write(arguments.out, {"machine": runs.machine(), "versions": versions, "rows": rows})


if __name__ == "__main__":
    main()
