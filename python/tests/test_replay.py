"""Adding, drawing and updating in one process."""

import resource

import numpy as np
import pytest
from transitions import FIELDS, assert_whole, numbered

import shoal

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "float16",
    "int32",
    "uint32",
    "float32",
    "int64",
    "uint64",
    "float64",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 5), (7, 1, 3)])
def test_values_of_every_type_and_shape_come_back_as_they_went_in(dtype, shape):
    replay = shoal.Replay(16, {"before": "uint8", "value": (shape, dtype), "after": "float32"})
    random = np.random.default_rng(0)
    values = random.integers(0, 2 if dtype == "bool" else 100, (16, *shape)).astype(dtype)
    slots = replay.add(
        {"before": np.arange(16, dtype=np.uint8), "value": values, "after": np.arange(16, dtype=np.float32)}
    )
    got = replay.get(slots)
    assert got["value"].dtype == dtype
    np.testing.assert_array_equal(got["value"], values)
    np.testing.assert_array_equal(got["before"], np.arange(16))
    np.testing.assert_array_equal(got["after"], np.arange(16))


def test_one_transition_and_many_are_told_apart_by_their_shapes(replay):
    one = {name: array[0] for name, array in numbered(7, 1).items()}
    assert list(replay.add(one)) == [0]
    assert list(replay.add(numbered(8, 2))) == [1, 2]
    assert len(replay) == 3
    assert_whole(replay.get([0, 1, 2]))


def test_the_oldest_transitions_make_room_for_the_newest(replay):
    for first in range(0, 200, 10):
        replay.add(numbered(first, 10))
    assert (len(replay), replay.inserted) == (64, 200)
    batch = replay.sample(512)
    assert_whole(batch)
    assert batch["action"].min() >= 200 - 64


def test_transitions_are_drawn_in_proportion_to_their_priorities():
    replay = shoal.Replay(8, FIELDS, alpha=0.5, epsilon=0.0, seed=3)
    errors = np.array([0.0, 1, 4, 9, 16, 25, 36, 49], dtype=np.float32)
    replay.add(numbered(0, 8), errors)
    expected = np.sqrt(errors)
    np.testing.assert_allclose(replay.priorities(), expected, atol=2e-6)
    drawn = np.bincount(np.concatenate([replay.sample(280)["action"] for _ in range(100)]), minlength=8)
    np.testing.assert_allclose(drawn / drawn.sum(), expected / expected.sum(), atol=0.004)


def test_weights_are_those_of_the_paper():
    replay = shoal.Replay(8, FIELDS, alpha=1.0, beta=0.7, epsilon=0.0, seed=3)
    errors = np.arange(1, 9, dtype=np.float32)
    replay.add(numbered(0, 8), errors)
    batch = replay.sample(64)
    weights = (8 * errors[batch.indices] / errors.sum()) ** -0.7
    np.testing.assert_allclose(batch.weights, weights / weights.max(), rtol=1e-5)
    np.testing.assert_array_equal(replay.sample(64, weights=False).weights, np.ones(64))
    np.testing.assert_allclose(replay.sample(64, beta=0.0).weights, np.ones(64))


def test_beta_follows_its_schedule():
    replay = shoal.Replay(8, FIELDS, beta=(0.4, 1.0, 100))
    replay.add(numbered(0, 8))
    assert replay.beta == pytest.approx(0.4)
    replay.sample(50)
    assert replay.beta == pytest.approx(0.7)
    replay.sample(500)
    assert replay.beta == pytest.approx(1.0)


def test_new_transitions_get_the_largest_error_so_far(replay):
    replay.add(numbered(0, 2))
    assert replay.max_priority == 1.0
    replay.update_priorities([0], [5.0])
    assert replay.max_priority == pytest.approx(5.0, rel=1e-4)
    slots = replay.add(numbered(2, 1))
    np.testing.assert_allclose(replay.priorities(slots), 5.0**0.6, rtol=1e-4)


def test_errors_given_with_new_transitions_count_for_the_largest(replay):
    replay.add(numbered(0, 2), [3.0, 0.5])
    assert replay.max_priority == pytest.approx(3.0, rel=1e-4)
    np.testing.assert_allclose(replay.priorities(replay.add(numbered(2, 1))), 3.0**0.6, rtol=1e-4)


def test_options_are_returned_as_they_were_given():
    replay = shoal.Replay(8, FIELDS, alpha=0.7, beta=0.3)
    assert (replay.alpha, replay.beta, replay.capacity, replay.prioritized) == (0.7, 0.3, 8, True)


def test_uniform_replays_draw_all_transitions_equally_often():
    replay = shoal.Replay(8, FIELDS, prioritized=False, seed=2)
    replay.add(numbered(0, 8))
    batch = replay.sample(8000)
    assert_whole(batch)
    assert np.bincount(batch["action"], minlength=8).min() > 850
    np.testing.assert_array_equal(batch.weights, np.ones(8000))
    with pytest.raises(ValueError, match="prioritized=True"):
        replay.update_priorities([0], [1.0])
    with pytest.raises(ValueError, match="prioritized=True"):
        replay.add(numbered(0, 1), [1.0])


def test_batches_can_be_filled_again_without_allocating(replay):
    replay.add(numbered(0, 64))
    batch = replay.sample(32)
    arrays = {name: array.ctypes.data for name, array in batch.items()}
    assert replay.sample(32, out=batch) is batch
    assert {name: array.ctypes.data for name, array in batch.items()} == arrays
    assert_whole(batch)
    with pytest.raises(ValueError, match="batch of 16"):
        replay.sample(16, out=batch)


def test_a_batch_is_a_mapping(replay):
    from collections.abc import Mapping

    replay.add(numbered(0, 8))
    batch = replay.sample(4)
    assert isinstance(batch, Mapping)
    assert dict(batch).keys() == FIELDS.keys() == set(batch) == batch.keys()
    assert batch.keys() - {"action"} == FIELDS.keys() - {"action"}
    assert "action" in batch and "weights" not in batch and batch.get("weights") is None


def test_the_same_seed_draws_the_same():
    def draw():
        replay = shoal.Replay(64, FIELDS, seed=11)
        replay.add(numbered(0, 64), np.arange(64, dtype=np.float32))
        return replay.sample(32)["action"]

    np.testing.assert_array_equal(draw(), draw())


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def test_clear_takes_no_memory_for_transitions_that_were_never_there():
    replay = shoal.Replay(2**14, {"image": ((2**14,), "uint8")})
    replay.add({"image": np.zeros((10, 2**14), np.uint8)})
    before = resident_bytes()
    replay.clear()
    # A page of 4 KiB in each slot would be twice as much.
    assert resident_bytes() - before < 2**25


def test_clear_empties_the_replay_and_makes_old_batches_stale(replay):
    replay.add(numbered(0, 64))
    batch = replay.sample(4)
    replay.clear()
    assert (len(replay), replay.inserted, replay.total_priority) == (0, 0, 0.0)
    with pytest.raises(shoal.EmptyError):
        replay.sample(1)
    replay.add(numbered(100, 64))
    assert_whole(replay.sample(64))
    with pytest.raises(shoal.StaleIndexError):
        replay.update_priorities(batch, np.ones(4))


def test_values_that_numpy_would_cast_are_cast_and_others_refused(replay):
    row = {name: array[0] for name, array in numbered(3, 1).items()}
    replay.add({**row, "observation": [3.0, 3.0, 3.0], "reward": 3, "action": np.int32(3)})
    replay.add({**row, "observation": np.full(3, 3.0, dtype=np.float64)})
    replay.add({**row, "observation": np.full((3, 2), 3.0, dtype=np.float32)[:, 0]})
    assert_whole(replay.get([0, 1, 2]))
    with pytest.raises(TypeError, match="action.*float64.*int64"):
        replay.add({**row, "action": 3.5})
    assert len(replay) == 3


def test_root_and_leaves_agree_exactly_after_many_updates():
    replay = shoal.Replay(1000, {"x": "float32"}, alpha=1.0, epsilon=0.0, seed=5)
    replay.add({"x": np.zeros(1000, dtype=np.float32)})
    random = np.random.default_rng(0)
    for _ in range(2000):
        replay.update_priorities(random.integers(0, 1000, 256), random.random(256) * 10.0 ** random.integers(-3, 4))
    # Priorities are fixed-point numbers, whose sum is exact in any order.
    assert replay.total_priority == replay.priorities().sum()
    replay.update_priorities(np.arange(1000), np.r_[np.zeros(991), np.ones(9)])
    assert set(replay.sample(3000).indices[100:]) >= set(range(991, 1000))


@pytest.mark.parametrize("axis", [4, np.int64(4), np.array(4)])
def test_a_number_is_the_shape_of_one_axis(axis):
    replay = shoal.Replay(8, {"value": (axis, "float32"), "image": shoal.Frames(axis, stack=2)})
    assert replay.fields == {"value": shoal.Field((4,)), "image": shoal.Frames((4,), stack=2)}
    slots = replay.add({"value": [1.0, 2.0, 3.0, 4.0], "image": np.ones((2, 4), np.uint8)})
    assert replay.get(slots)["value"].tolist() == [[1.0, 2.0, 3.0, 4.0]]
