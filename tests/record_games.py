"""Records what the image games do in other implementations, for tests/image_games.rs.

The implementation of `Catch-v0` is DeepMind's own. That of `Rally-v0` is in this file and follows the rules that
src/environments/native/rally.rs states. Both draw from NumPy's generator, as Shoal's environments do.

    python3 -m venv /tmp/games
    /tmp/games/bin/pip install numpy==2.4.6 safetensors==0.8.0 dm_env==1.6
    /tmp/games/bin/pip install --no-deps bsuite==0.3.5
    /tmp/games/bin/python tests/record_games.py            # writes tests/data/environments/

A file holds one table; a row is either a reset or a step:
    flags         u8     1 terminated, 2 truncated, 4 the row is a reset, 8 the reset has a seed
    action        u8     0 in the row of a reset
    screen_crc32  u32    CRC-32 of the screen that the call returned, as bytes
    reward        i8     0 in the row of a reset
    seeds         u64    one for each seeded reset, in order
"""

import importlib.metadata
import importlib.util
import sys
import types
import zlib
from pathlib import Path

import numpy
from safetensors.numpy import save_file

PINNED = {"bsuite": "0.3.5", "dm_env": "1.6", "numpy": "2.4.6"}
METADATA = {"recorded_with": ", ".join(f"{name} {version}" for name, version in PINNED.items())}
TERMINATED, TRUNCATED, RESET, SEEDED = 1, 2, 4, 8


def bsuite_catch():
    """The class `Catch`, without running bsuite's `__init__.py`, which imports a plotting library."""
    package = types.ModuleType("bsuite")
    package.__path__ = list(importlib.util.find_spec("bsuite").submodule_search_locations)
    sys.modules["bsuite"] = package
    from bsuite.environments.catch import Catch

    return Catch


class Columns:
    """Replaces bsuite's generator: draws a random column as Shoal's environment does."""

    def __init__(self, random):
        self.random = random

    def randint(self, columns):
        return int(self.random.random() * columns)


class Catch:
    """DeepMind's game with the interface of `Rally`, and with lit pixels of 255."""

    def __init__(self):
        self.game = bsuite_catch()()

    def reset(self, seed=None):
        if seed is not None:
            self.game._rng = Columns(numpy.random.default_rng(seed))
        return self._screen(self.game.reset())

    def step(self, action):
        step = self.game.step(action)
        return self._screen(step), step.reward, step.last(), False

    def _screen(self, step):
        return (step.observation * 255).astype(numpy.uint8)


class Rally:
    """A second implementation of Rally-v0. It computes and draws everything anew in every step."""

    AGENT, OPPONENT = 8, 4

    def reset(self, seed=None):
        if seed is not None:
            self.random = numpy.random.default_rng(seed)
        draws = [(self.random.random(), self.random.uniform(-1.0, 1.0)) for _ in range(9)]
        self.serves = [(2 if side >= 0.5 else -2, rows) for side, rows in draws]
        self.points = {"agent": 0, "opponent": 0}
        self.steps = 0
        self._serve()
        return self._screen()

    def step(self, action):
        self.steps += 1
        self.agent = min(max(self.agent + (0, -2, 2)[action], 0), 40 - self.AGENT)
        self.column += self.columns
        self.row += self.rows
        if self.row < 0:
            self.row, self.rows = -self.row, -self.rows
        if self.row > 38:
            self.row, self.rows = 76 - self.row, -self.rows
        lag = (self.row + 1) - (self.opponent + self.OPPONENT / 2)
        self.opponent = min(max(self.opponent + min(max(lag, -1.2), 1.2), 0), 40 - self.OPPONENT)

        reward = 0
        if self.column == 36:
            reward = -self._return_or_miss("opponent", self.agent, self.AGENT)
        elif self.column == 4:
            reward = self._return_or_miss("agent", self.opponent, self.OPPONENT)
        return self._screen(), reward, max(self.points.values()) == 5, self.steps == 2000

    def _return_or_miss(self, winner, paddle, height):
        """What happens when the ball is beside this paddle: 0 if it returns the ball, 1 if it misses it."""
        offset = (self.row + 1) - (paddle + height / 2)
        if abs(offset) <= (height + 2) / 2:
            self.columns, self.rows = -self.columns, 2 * min(max(offset / 3, -1.0), 1.0)
            return 0
        self.points[winner] += 1
        if self.points[winner] < 5:
            self._serve()
        return 1

    def _serve(self):
        self.column, self.row = 20, 19.0
        self.columns, self.rows = self.serves[sum(self.points.values())]
        self.agent, self.opponent = 20 - self.AGENT // 2, 20.0 - self.OPPONENT / 2

    def _screen(self):
        screen = numpy.zeros((42, 42), dtype=numpy.uint8)
        ball, opponent = (2 + int(row + 0.5) for row in (self.row, self.opponent))
        screen[ball : ball + 2, self.column : self.column + 2] = 255
        screen[2 + self.agent : 10 + self.agent, 38:40] = 255
        screen[opponent : opponent + 4, 2:4] = 255
        screen[0, [2 + 2 * point for point in range(self.points["opponent"])]] = 255
        screen[0, [39 - 2 * point for point in range(self.points["agent"])]] = 255
        return screen


class Recorder:
    """Plays a game and records what it returns."""

    def __init__(self, game):
        self.game = game
        self.flags, self.actions, self.checksums, self.rewards, self.seeds = [], [], [], [], []

    def episode(self, policy, seed=None):
        """Plays one episode and returns its return. `policy(game, step)` gives the action."""
        self._row(RESET | (SEEDED if seed is not None else 0), 0, self.game.reset(seed), 0)
        self.seeds += [seed] if seed is not None else []
        total, step, flags = 0, 0, 0
        while not flags:
            action = int(policy(self.game, step))
            screen, reward, terminated, truncated = self.game.step(action)
            flags = TERMINATED * terminated | TRUNCATED * truncated
            self._row(flags, action, screen, reward)
            total, step = total + reward, step + 1
        return total

    def save(self, path):
        tensors = {
            "flags": numpy.array(self.flags, dtype=numpy.uint8),
            "action": numpy.array(self.actions, dtype=numpy.uint8),
            "screen_crc32": numpy.array(self.checksums, dtype=numpy.uint32),
            "reward": numpy.array(self.rewards, dtype=numpy.int8),
            "seeds": numpy.array(self.seeds, dtype=numpy.uint64),
        }
        save_file(tensors, path, METADATA)
        resets = sum(bool(flags & RESET) for flags in self.flags)
        print(f"{path.name}: {len(self.flags) - resets} steps, {resets} resets, {path.stat().st_size} bytes")

    def _row(self, flags, action, screen, reward):
        self.flags.append(flags)
        self.actions.append(action)
        self.checksums.append(zlib.crc32(screen.tobytes()))
        self.rewards.append(reward)


def catch():
    recorder, random = Recorder(Catch()), numpy.random.default_rng(1)
    for seed in [*range(20), 2**32, 2**63]:
        recorder.episode(lambda *_: random.integers(3), seed=seed)
        recorder.episode(lambda *_: random.integers(3))
    for action in range(3):
        recorder.episode(lambda *_, action=action: action, seed=100 + action)
    follow = lambda game, _: 1 + numpy.sign(game.game._ball_x - game.game._paddle_x)  # noqa: E731
    assert all(recorder.episode(follow) == 1 for _ in range(20))
    return recorder


def towards(game, row):
    """The action that moves the middle of the agent's paddle towards this row."""
    lag = row - (game.agent + 4)
    return 0 if abs(lag) <= 1 else 2 if lag > 0 else 1


def rally():
    recorder, random = Recorder(Rally()), numpy.random.default_rng(2)
    for seed in [*range(6), 2**63]:
        recorder.episode(lambda *_: random.integers(3), seed=seed)
        recorder.episode(lambda *_: random.integers(3))
    for action in range(3):
        recorder.episode(lambda *_, action=action: action, seed=100 + action)
    aim = lambda game, _: towards(game, game.row + 1 - (2 if game.row < 19 else -2) if game.columns > 0 else 20)  # noqa: E731
    assert all(recorder.episode(aim) == 5 for _ in range(4))
    keep = lambda game, _: towards(game, game.row + 1)  # noqa: E731
    recorder.episode(keep)
    assert recorder.flags[-1] == TRUNCATED
    return recorder


def main():
    for name, version in PINNED.items():
        assert importlib.metadata.version(name) == version, f"{name} has to be {version}"
    folder = Path(__file__).parent / "data" / "environments"
    for name, record in {"Catch-v0": catch, "Rally-v0": rally}.items():
        record().save(folder / f"{name}.safetensors")


if __name__ == "__main__":
    main()
