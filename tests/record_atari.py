"""Records what Gymnasium's Atari environments return through its wrappers, for tests/python/atari_parity.rs.

The committed files come from exactly the pinned versions; another version is refused.

    python3 -m venv /tmp/gymnasium
    /tmp/gymnasium/bin/pip install gymnasium==1.4.0 numpy==2.4.6 ale-py==0.12.1 opencv-python-headless==5.0.0.93 safetensors==0.8.0
    /tmp/gymnasium/bin/python tests/record_atari.py   # writes tests/data/atari/

A file holds one column of checksums for each way of playing the game. A row is a reset or a step, and its checksum the CRC-32 of
    observation  u8 x 4 x size x size    what the call returned: AtariPreprocessing, then FrameStackObservation
    reward       f64                     0 in the row of a reset
    flags        u8                      1 terminated, 2 truncated, 4 the row is a reset
`action` gives the action of a step, and `SEEDS` and `STEPS_PER_SEED` the reset seeds; the test has the same definitions.
"""

import struct
import zlib
from pathlib import Path

import ale_py
import cv2
import gymnasium
import numpy
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation
from safetensors.numpy import save_file

PINNED = {
    "gymnasium": (gymnasium.__version__, "1.4.0"),
    "numpy": (numpy.__version__, "2.4.6"),
    "ale-py": (ale_py.__version__, "0.12.1"),
    "opencv": (cv2.__version__, "5.0.0"),
}
# One key only: safetensors writes several in an order that changes from run to run.
METADATA = {"recorded_with": ", ".join(f"{name} {version}" for name, (_, version) in PINNED.items())}
TERMINATED, TRUNCATED, RESET = 1, 2, 4
# The game is seeded anew after every `STEPS_PER_SEED` steps, also in the middle of a game.
SEEDS = [7, 2**40 + 1, 3, 2**63 + 5]
STEPS_PER_SEED = 2_500
HELD_STEPS = 3


def action(step, actions):
    return (step // HELD_STEPS * 2_654_435_761 % 2**32 >> 16) % actions


def record(game, steps, sticky, preprocessing, **arguments):
    environment = gymnasium.make(f"ALE/{game}-v5", frameskip=1, repeat_action_probability=sticky, **arguments)
    environment = FrameStackObservation(AtariPreprocessing(environment, **preprocessing), 4)
    actions = int(environment.action_space.n)
    rows = []
    ends = {TERMINATED: 0, TRUNCATED: 0}

    def row(observation, reward, flags):
        assert observation.dtype == numpy.uint8
        rows.append(zlib.crc32(observation.tobytes() + struct.pack("<dB", reward, flags)))

    for step in range(steps):
        if step % STEPS_PER_SEED == 0:
            row(environment.reset(seed=SEEDS[step // STEPS_PER_SEED])[0], 0.0, RESET)
        observation, reward, terminated, truncated, _ = environment.step(action(step, actions))
        flags = TERMINATED * terminated | TRUNCATED * truncated
        row(observation, float(reward), flags)
        if flags:
            ends[flags] += 1
            row(environment.reset()[0], 0.0, RESET)
    print(f"{game}, sticky {sticky}: {steps} steps, {ends[TERMINATED]} terminated, {ends[TRUNCATED]} truncated")
    return numpy.array(rows, dtype=numpy.uint32)


def main():
    wrong = [f"{name} {found}, not {pinned}" for name, (found, pinned) in PINNED.items() if found != pinned]
    assert not wrong, f"recordings come from other versions: {wrong}"
    gymnasium.register_envs(ale_py)
    folder = Path(__file__).parent / "data" / "atari"
    folder.mkdir(parents=True, exist_ok=True)
    for game in ("Pong", "Breakout", "SpaceInvaders"):
        columns = {name: record(game, 10_000, sticky, {}) for name, sticky in (("always", 0.0), ("sticky", 0.25))}
        save_file(columns, folder / f"{game}.safetensors", METADATA)
    # Smaller frames, fewer no-op actions at the start, and games that are truncated.
    small = record("Breakout", 2_500, 0.25, {"screen_size": 42, "noop_max": 7}, max_num_frames_per_episode=1_000)
    save_file({"sticky": small}, folder / "Breakout-42.safetensors", METADATA)


if __name__ == "__main__":
    main()
