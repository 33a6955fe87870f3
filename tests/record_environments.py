"""Records what Gymnasium's classic-control environments do, for tests/environment_parity.rs.

The committed files come from exactly the pinned versions; another version is refused.

    python3 -m venv /tmp/gymnasium
    /tmp/gymnasium/bin/pip install gymnasium==1.4.0 numpy==2.4.6 safetensors==0.8.0
    /tmp/gymnasium/bin/python tests/record_environments.py            # writes tests/data/environments/
    /tmp/gymnasium/bin/python tests/record_environments.py --times 20 # longer recordings, for a deeper check

A file holds one table; a row is either a reset or a step:
    flags        u8             1 terminated, 2 truncated, 4 the row is a reset, 8 the reset has a seed
    action       u8 or f32      0 in the row of a reset
    observation  f32 x N        what the call returned
    reward       f64            0 in the row of a reset
    seeds        u64            one for each seeded reset, in order
and the spaces and limits: observation_low, observation_high, action_low, action_high (continuous) or action_n (discrete),
time_limit_steps, reward_threshold (NaN if there is none).
"""

import argparse
import itertools
import math
import warnings
import zlib
from pathlib import Path

import gymnasium
import numpy
from safetensors.numpy import save_file

PINNED = {"gymnasium": (gymnasium, "1.4.0"), "numpy": (numpy, "2.4.6")}
# One key only: safetensors writes several in an order that changes from run to run.
METADATA = {"recorded_with": ", ".join(f"{name} {version}" for name, (_, version) in PINNED.items())}
TERMINATED, TRUNCATED, RESET, SEEDED = 1, 2, 4, 8
CHECKED_NORMALS = 2**20
LARGE_SEEDS = [0, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63, 2**64 - 1]


class Recorder:
    """Calls an environment and records what it returns."""

    def __init__(self, name):
        self.environment = gymnasium.make(name)
        self.discrete = isinstance(self.environment.action_space, gymnasium.spaces.Discrete)
        self.flags, self.actions, self.observations, self.rewards, self.seeds = [], [], [], [], []
        self.endings = set()

    def reset(self, seed=None):
        observation, _ = self.environment.reset(seed=seed)
        if seed is not None:
            self.seeds.append(seed)
        self._row(RESET | (SEEDED if seed is not None else 0), 0, observation, 0.0)
        return observation

    def step(self, action):
        given = int(action) if self.discrete else numpy.array([action], dtype=numpy.float32)
        observation, reward, terminated, truncated, _ = self.environment.step(given)
        flags = TERMINATED * terminated | TRUNCATED * truncated
        if flags:
            self.endings.add(int(flags))
        self._row(flags, given if self.discrete else given[0], observation, float(reward))
        return observation, bool(flags)

    def episode(self, policy, seed=None, max_steps=None):
        """One episode, or its first `max_steps` steps; `policy(observation, step)` gives the action."""
        observation = self.reset(seed)
        for step in itertools.count():
            observation, ended = self.step(policy(observation, step))
            if ended or step + 1 == max_steps:
                return step + 1

    def save(self, path):
        spec, space = self.environment.spec, self.environment.action_space
        assert all(observation.dtype == numpy.float32 for observation in self.observations)
        tensors = {
            "flags": numpy.array(self.flags, dtype=numpy.uint8),
            "action": numpy.array(self.actions, dtype=numpy.uint8 if self.discrete else numpy.float32),
            "observation": numpy.array(self.observations, dtype=numpy.float32),
            "reward": numpy.array(self.rewards, dtype=numpy.float64),
            "seeds": numpy.array(self.seeds, dtype=numpy.uint64),
            "observation_low": self.environment.observation_space.low,
            "observation_high": self.environment.observation_space.high,
            "time_limit_steps": numpy.array([spec.max_episode_steps], dtype=numpy.uint32),
            "reward_threshold": numpy.array([math.nan if spec.reward_threshold is None else spec.reward_threshold]),
        }
        if self.discrete:
            tensors["action_n"] = numpy.array([space.n], dtype=numpy.uint32)
        else:
            tensors |= {"action_low": space.low, "action_high": space.high}
        save_file(tensors, path, METADATA)
        steps = sum(not flags & RESET for flags in self.flags)
        print(f"{path.name}: {steps} steps, {len(self.flags) - steps} resets, endings {sorted(self.endings)}, {path.stat().st_size} bytes")

    def _row(self, flags, action, observation, reward):
        self.flags.append(flags)
        self.actions.append(action)
        self.observations.append(numpy.array(observation))
        self.rewards.append(reward)


def cart_pole(times):
    recorder, random = Recorder("CartPole-v1"), numpy.random.default_rng(1)

    def balance(observation, _):
        return 0.1 * observation[0] + 0.3 * observation[1] + 3.0 * observation[2] + observation[3] > 0.0

    def drift(direction):
        """Keeps the pole leaning, so that the cart leaves the track before the pole falls."""
        return lambda observation, _: observation[2] + 0.5 * observation[3] > 0.03 * direction

    for round_ in range(times):
        assert recorder.episode(balance, seed=7 + round_) == 500
        for direction in (-1.0, 1.0):
            recorder.episode(drift(direction))
        for seed in range(25):
            recorder.episode(lambda *_: random.integers(2), seed=seed + 1000 * round_)
            recorder.episode(lambda *_: random.integers(2))
        for action in (0, 1):
            recorder.episode(lambda *_, action=action: action, seed=2**40 + round_)
    positions = [observation[0] for observation in recorder.observations]
    assert min(positions) < -2.4 and max(positions) > 2.4, "the cart never left the track on one of the sides"
    return recorder


def swing(observation, _):
    return 2 if observation[1] >= 0.0 else 0


def mountain_car(times):
    recorder, random = Recorder("MountainCar-v0"), numpy.random.default_rng(2)
    for round_ in range(times):
        for seed in range(7):
            recorder.episode(lambda *_: random.integers(3), seed=seed + 1000 * round_ if seed % 2 == 0 else None)
        assert recorder.episode(swing, seed=round_) < 200
        recorder.episode(lambda *_: random.integers(3))
        # Drives away from the goal at the end of a swing: into the wall on the left.
        recorder.episode(lambda observation, step: swing(observation, step) if step < 60 else 0)
        assert any(observation[0] == numpy.float32(-1.2) for observation in recorder.observations)
    # Waiting before the swing delays the arrival. With one of these waits it falls on the step of the time limit.
    trial = Recorder("MountainCar-v0")
    for seed, wait in itertools.product(range(20), range(60, 100)):
        late = lambda observation, step, wait=wait: swing(observation, step) if step >= wait else 1  # noqa: E731
        trial.episode(late, seed=seed)
        if trial.flags[-1] == TERMINATED | TRUNCATED:
            recorder.episode(late, seed=seed)
            break
    assert recorder.endings == {TERMINATED, TRUNCATED, TERMINATED | TRUNCATED}
    return recorder


def mountain_car_continuous(times):
    recorder, random = Recorder("MountainCarContinuous-v0"), numpy.random.default_rng(3)

    def swing_with(strength):
        return lambda observation, _: math.copysign(strength, observation[1]) * random.uniform(0.8, 1.2)

    for round_ in range(times):
        recorder.episode(lambda *_: random.uniform(-3.0, 3.0), seed=round_)
        for strength in (1.0, 0.9, 5.0):
            assert recorder.episode(swing_with(strength)) < 999
        # The first step is computed in double precision, later ones in single precision. So there are many short episodes, with
        # actions on either side of the bounds.
        for seed in range(25):
            recorder.episode(lambda *_: random.uniform(-1.5, 1.5), seed=seed + 1000 * round_, max_steps=8)
        recorder.episode(lambda observation, step: swing(observation, step) - 1.0 if step < 70 else -1.0, max_steps=150)
        recorder.episode(lambda *_: random.choice([-1.0, 0.0, 1.0, -1e30, 1e30, 1e-30]), max_steps=400)
        assert any(observation[0] == numpy.float32(-1.2) for observation in recorder.observations)
    return recorder


def pendulum(times):
    recorder, random = Recorder("Pendulum-v1"), numpy.random.default_rng(4)
    for round_ in range(times):
        for seed in range(4):
            recorder.episode(lambda *_: random.uniform(-4.0, 4.0), seed=seed + 1000 * round_)
            recorder.episode(lambda *_: random.uniform(-2.0, 2.0))
        # Pushing with the motion makes the pendulum turn over and reach the largest speed.
        for strength in (2.0, 1.0, 1e30):
            recorder.episode(lambda observation, _, strength=strength: math.copysign(strength, observation[2]))
        assert any(abs(observation[2]) == 8.0 for observation in recorder.observations)
    return recorder


def acrobot(times):
    recorder, random = Recorder("Acrobot-v1"), numpy.random.default_rng(5)
    for round_ in range(times):
        recorder.episode(lambda *_: random.integers(3), seed=round_)
        recorder.episode(lambda *_: random.integers(3))
        for seed in range(10):
            # Pushing with the motion of the lower link pumps energy into both.
            assert recorder.episode(lambda observation, _: 2 if observation[5] > 0.0 else 0, seed=seed + 1000 * round_) < 500
        # Every ninth action is random: other ways over the line.
        for _ in range(2):
            recorder.episode(lambda observation, step: random.integers(3) if step % 9 == 0 else 2 * int(observation[5] > 0.0))
    # Seeds for which NumPy's single-precision sine or cosine differs from the rounded double-precision one.
    for seed in range(20_000):
        observation = recorder.environment.reset(seed=seed)[0]
        state = recorder.environment.unwrapped.state.astype(numpy.float64)
        wide = [function(angle) for angle in state[:2] for function in (numpy.cos, numpy.sin)]
        if any(observation[:4] != numpy.array(wide, dtype=numpy.float32)):
            recorder.reset(seed=seed)
    return recorder


def normal_checksum(seed):
    """CRC-32 of a million normal numbers and one uniform number after them, little-endian."""
    random = gymnasium.utils.seeding.np_random(seed)[0]
    numbers = numpy.append(random.standard_normal(CHECKED_NORMALS), random.uniform(0.0, 1.0))
    return zlib.crc32(numbers.astype("<f8").tobytes())


def random_numbers(path):
    """Records NumPy's seeding, children of seeds, and uniform and normal numbers, without an environment."""
    seeds = LARGE_SEEDS + list(range(1, 30)) + [12345678901234567890]
    children = [0, 1, 2, 63, 2**16, 2**32 - 1]
    sequence = numpy.random.SeedSequence
    tensors = {
        "seeds": numpy.array(seeds, dtype=numpy.uint64),
        "children": numpy.array(children, dtype=numpy.uint32),
        "state": numpy.array([sequence(seed).generate_state(4, numpy.uint64) for seed in seeds]),
        "child_seed": numpy.array(
            [[sequence(seed, spawn_key=(child,)).generate_state(1, numpy.uint64)[0] for child in children] for seed in seeds]
        ),
        "normal": numpy.array([gymnasium.utils.seeding.np_random(seed)[0].standard_normal(16) for seed in seeds]),
        "normal_checksum": numpy.array([normal_checksum(seed) for seed in seeds[:4]], dtype=numpy.uint32),
        "uniform": numpy.array([gymnasium.utils.seeding.np_random(seed)[0].uniform(-0.05, 0.05, 16) for seed in seeds]),
    }
    save_file(tensors, path, METADATA)
    print(f"{path.name}: {len(seeds)} seeds, {path.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "data" / "environments")
    parser.add_argument("--times", type=int, default=1, help="how often to repeat the episodes, each time with other seeds")
    arguments = parser.parse_args()
    for name, (module, version) in PINNED.items():
        if module.__version__ != version:
            parser.error(f"{name} {module.__version__} is installed, the recordings are of {version}: pip install {name}=={version}")
    warnings.simplefilter("ignore")  # Actions outside the space are intended.
    arguments.output.mkdir(parents=True, exist_ok=True)
    random_numbers(arguments.output / "numpy_random.safetensors")
    for record in (cart_pole, mountain_car, mountain_car_continuous, pendulum, acrobot):
        recorder = record(arguments.times)
        for seed in LARGE_SEEDS:
            recorder.reset(seed)
        recorder.save(arguments.output / f"{recorder.environment.spec.id}.safetensors")


if __name__ == "__main__":
    main()
