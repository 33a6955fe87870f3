"""Stacked frames: each is stored once, and stacks are returned exactly as they were added."""

import numpy as np
import pytest

import shoal

SHAPE, STACK = (12, 10), 4


def make(capacity=200, **options):
    frames = shoal.Frames(SHAPE, "uint8", STACK)
    return shoal.Replay(capacity, {"observation": frames, "number": "int64", "next_observation": frames}, **options)


def episodes(lengths, seed=0, blank_start=False):
    """Transitions of an environment with stacked frames: at a reset the first frame is repeated, or blanks come first."""
    random = np.random.default_rng(seed)
    number = 0
    for length in lengths:
        first = random.integers(0, 256, SHAPE, dtype=np.uint8)
        stack = [np.zeros(SHAPE, np.uint8)] * (STACK - 1) + [first] if blank_start else [first] * STACK
        for _ in range(length):
            following = [*stack[1:], random.integers(0, 256, SHAPE, dtype=np.uint8)]
            yield {"observation": np.stack(stack), "number": number, "next_observation": np.stack(following)}
            stack, number = following, number + 1


@pytest.mark.parametrize("blank_start", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_stacks_come_back_exactly_also_at_the_borders_of_episodes(blank_start, batched):
    replay = make()
    shown = list(episodes([1, 2, 3, 30, 4, 50], blank_start=blank_start))
    if batched:
        replay.add({name: np.stack([row[name] for row in shown]) for name in shown[0]})
    else:
        for row in shown:
            replay.add(row)
    batch = replay.sample(300)
    assert batch["observation"].shape == (300, STACK, *SHAPE)
    for row, number in enumerate(batch["number"]):
        np.testing.assert_array_equal(batch["observation"][row], shown[number]["observation"])
        np.testing.assert_array_equal(batch["next_observation"][row], shown[number]["next_observation"])


def test_each_frame_is_stored_once():
    """With room for all distinct frames nothing is lost; with room for one frame fewer, something is."""
    lengths = [600, 398]
    shown = list(episodes(lengths))
    distinct = len({frame.tobytes() for row in shown for frame in (*row["observation"], *row["next_observation"])})
    assert distinct == sum(lengths) + len(lengths)
    replay = make(capacity=998, frame_capacity=distinct)
    for row in shown:
        replay.add(row)
    for number in range(998):
        np.testing.assert_array_equal(replay.get([number])["observation"][0], shown[number]["observation"])
    smaller = make(capacity=998, frame_capacity=distinct - 1)
    for row in shown:
        smaller.add(row)
    with pytest.raises(IndexError, match="slot 0 has lost a frame; raise frame_capacity"):
        smaller.get([0])


def test_a_replay_that_keeps_too_few_frames_to_draw_from_says_what_to_change():
    replay = make(capacity=3000, frame_capacity=16, prioritized=False)
    for row in episodes([3000]):
        replay.add(row)
    with pytest.raises(shoal.ReplayError, match="most in the replay have lost a frame; raise frame_capacity"):
        replay.sample(256)


def test_a_million_atari_transitions_take_about_seven_gigabytes():
    frames = shoal.Frames((84, 84), "uint8", 4)
    replay = shoal.Replay(
        1_000_000,
        {
            "observation": frames,
            "action": "uint8",
            "reward": "float32",
            "terminated": "bool",
            "next_observation": frames,
        },
    )
    assert replay.nbytes < 7.5 * 2**30
    # Memory is used only as far as the replay is filled: so far only the header was touched.
    replay.close()


@pytest.mark.parametrize("prioritized", [False, True])
def test_transitions_whose_frames_are_gone_are_not_drawn(prioritized):
    replay = make(capacity=100, frame_capacity=40, prioritized=prioritized)
    shown = list(episodes([100]))
    for row in shown:
        replay.add(row)
    for _ in range(5):
        batch = replay.sample(64)
        assert batch["number"].min() >= 100 - 40
        for row, number in enumerate(batch["number"]):
            np.testing.assert_array_equal(batch["next_observation"][row], shown[number]["next_observation"])


def test_frames_survive_saving(tmp_path):
    replay = make()
    shown = list(episodes([15, 25]))
    for row in shown:
        replay.add(row)
    replay.save(tmp_path / "replay")
    loaded = shoal.Replay.load(tmp_path / "replay")
    for number, row in enumerate(shown):
        np.testing.assert_array_equal(loaded.get([number])["next_observation"][0], row["next_observation"])
    loaded.add(shown[0])
    np.testing.assert_array_equal(loaded.get([40])["observation"][0], shown[0]["observation"])


@pytest.mark.parametrize("stack", [0, -1, 2.7, 4.0, "4", None])
def test_a_stack_of_no_whole_number_of_frames_is_refused(stack):
    with pytest.raises(ValueError, match=f"a stack of {stack!r} frames"):
        shoal.Frames((8, 8), stack=stack)
    assert shoal.Frames((8, 8), stack=np.int64(2)) == shoal.Frames((8, 8), stack=2)


def test_frames_of_two_sizes_are_refused():
    with pytest.raises(ValueError, match="share one store"):
        shoal.Replay(100, {"a": shoal.Frames((8, 8)), "b": shoal.Frames((9, 8))})
