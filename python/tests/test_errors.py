"""Wrong arguments are refused with the value, the limit and the next step, and change nothing."""

import os
import resource

import numpy as np
import pytest
from transitions import FIELDS, assert_whole, numbered

import shoal


@pytest.fixture
def filled():
    replay = shoal.Replay(8, FIELDS, seed=1)
    replay.add(numbered(0, 8))
    return replay


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, -1e-30])
def test_an_invalid_priority_is_refused_and_changes_nothing(filled, value):
    before = filled.priorities()
    with pytest.raises(ValueError, match="position 1"):
        filled.update_priorities([0, 1, 2], [1.0, value, 2.0])
    with pytest.raises(ValueError, match="position 0"):
        filled.add(numbered(8, 1), [value])
    np.testing.assert_array_equal(filled.priorities(), before)
    assert filled.inserted == 8 and np.isfinite(filled.total_priority)
    assert_whole(filled.sample(32))


def test_priorities_above_the_largest_are_kept_as_the_largest_and_counted(filled):
    filled.update_priorities([0, 1, 2], [1e30, 3.0, 1e9])
    assert filled.saturated_priorities == 1, "1e9 to the power of alpha fits"
    np.testing.assert_allclose(filled.priorities([0, 2]), [2**19, 1e9**0.6], rtol=1e-5)
    filled.add(numbered(8, 2), [1.0, 1e30])
    assert filled.saturated_priorities == 2


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused_with_the_range(filled, tmp_path, seed):
    filled.save(tmp_path / "replay")
    for call in (
        lambda: shoal.Replay(8, FIELDS, seed=seed),
        lambda: shoal.Replay.load(tmp_path / "replay", seed=seed),
        lambda: shoal.Replay.open("absent", seed=seed),
        lambda: shoal.Replay.attach(os.getpid(), seed=seed),
        lambda: shoal.load("absent", seed=seed),
    ):
        with pytest.raises(ValueError, match=f"seed is {seed}; it must be between 0 and {2**64 - 1}"):
            call()


@pytest.mark.parametrize("index", [8, 100, -1, 2**40, -(2**40)])
def test_indices_out_of_range_are_refused_and_change_nothing(filled, index):
    before = filled.priorities()
    for call in (
        lambda: filled.update_priorities([0, index], [3.0, 3.0]),
        lambda: filled.get([index]),
        lambda: filled.priorities([index]),
    ):
        with pytest.raises(IndexError, match=f"index {index} .* 8 slots"):
            call()
    np.testing.assert_array_equal(filled.priorities(), before)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(np.int8, 300), (np.int8, 2**40), (np.int16, 70_000), (np.int32, 2**31), (np.int32, -(2**40)), (np.int64, 2**63)],
)
def test_whole_numbers_that_do_not_fit_a_field_are_refused(dtype, value):
    replay = shoal.Replay(8, {"count": dtype})
    with pytest.raises(OverflowError, match=f"count is {value}, which does not fit {np.dtype(dtype).name}"):
        replay.add({"count": value})
    assert len(replay) == 0
    replay.add({"count": np.iinfo(dtype).min})
    assert replay.get([0])["count"][0] == np.iinfo(dtype).min


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int64"])
def test_whole_numbers_of_any_type_are_kept(dtype):
    replay = shoal.Replay(8, {"count": dtype})
    for value in (3, np.int64(3), np.uint8(3), [3]):
        replay.add({"count": value})
    assert replay.get([0, 1, 2, 3])["count"].tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("value", [300, np.int64(300), [300], [1, 300], np.array([300]), np.array([1, 2, 300], np.int32)])
def test_numbers_of_any_type_that_do_not_fit_are_refused(value):
    replay = shoal.Replay(8, {"count": "int8"})
    with pytest.raises(OverflowError, match="count .* fit int8"):
        replay.add({"count": value})
    assert len(replay) == 0


def test_an_array_of_another_kind_is_refused_with_both_dtypes():
    replay = shoal.Replay(8, {"count": "uint8"})
    with pytest.raises(TypeError, match=r"count has dtype int64, which does not fit uint8; convert it with .astype"):
        replay.add({"count": np.array([3])})
    with pytest.raises(OverflowError, match="count is -1, which does not fit uint8"):
        replay.add({"count": -1})


def test_an_empty_list_of_slots_is_no_error(filled):
    before = filled.priorities()
    assert filled.get([]).batch_size == 0
    assert filled.priorities([]).shape == (0,)
    assert filled.update_priorities([], []) == 0
    np.testing.assert_array_equal(filled.priorities(), before)


def test_booleans_are_refused_as_slots(filled):
    mask = filled.priorities() > 0
    for call in (lambda: filled.get(mask), lambda: filled.update_priorities(mask, np.ones(8)), lambda: filled.get([True])):
        with pytest.raises(TypeError, match="truth values.*flatnonzero"):
            call()
    assert filled.get(np.flatnonzero(mask)).batch_size == 8


def test_an_unaligned_array_is_accepted():
    replay = shoal.Replay(8, {"x": ((3,), "float32")})
    message = b"\x00" + np.arange(3, dtype=np.float32).tobytes()
    replay.add({"x": np.frombuffer(message, "<f4", count=3, offset=1)})
    assert replay.get([0])["x"].tolist() == [[0.0, 1.0, 2.0]]


def test_a_batch_larger_than_the_memory_is_a_memory_error():
    replay = shoal.Replay(2, {"x": ((2**20,), "float64")}, prioritized=False)
    replay.add({"x": np.zeros(2**20)})
    with pytest.raises(MemoryError):
        replay.sample(2**24)
    assert len(replay.sample(1)) == 1


def test_a_field_too_large_for_a_transition_is_named_with_the_most_that_fits():
    with pytest.raises(ValueError, match=r"`x`.*\[4194304\].*2097152"):
        shoal.Replay(8, {"x": ((2**22,), "float32")})


def test_a_mapping_of_columns_whose_length_is_its_number_of_rows_is_accepted():
    class Columns:
        def __init__(self, columns):
            self.columns = columns

        def __len__(self):
            return 100

        def __iter__(self):
            return iter(range(100))

        def __getitem__(self, name):
            return self.columns[name]

        def keys(self):
            return self.columns.keys()

    replay = shoal.Replay(8, FIELDS)
    replay.add(Columns(numbered(0, 4)))
    assert len(replay) == 4
    with pytest.raises(ValueError, match="no field `unknown`"):
        replay.add(Columns({**numbered(0, 4), "unknown": 1}))


def test_slots_that_were_never_written_have_no_transition():
    replay = shoal.Replay(8, FIELDS)
    replay.add(numbered(0, 2))
    with pytest.raises(IndexError, match="slot 5 is empty"):
        replay.update_priorities([5], [1.0])
    with pytest.raises(IndexError, match="slot 5 is empty"):
        replay.get([5])


def test_overwritten_transitions_are_stale(filled):
    batch = filled.sample(8)
    filled.add(numbered(8, 8))
    before = filled.priorities()
    with pytest.raises(shoal.StaleIndexError, match="8 of 8"):
        filled.update_priorities(batch, np.full(8, 9.0))
    assert filled.update_priorities(batch, np.full(8, 9.0), stale="ignore") == 8
    assert filled.update_priorities(batch.indices, np.full(8, 9.0), batch.generations, stale="ignore") == 8
    np.testing.assert_array_equal(filled.priorities(), before)
    # Indices alone mean the transitions that are there now.
    assert filled.update_priorities(batch.indices, np.full(8, 9.0)) == 0


def test_sampling_an_empty_replay_is_an_error_and_no_hang():
    for shared in (False, True):
        with (
            shoal.Replay(64, FIELDS, shared=shared) as replay,
            pytest.raises(shoal.EmptyError, match="insert transitions first"),
        ):
            replay.sample(4)


@pytest.mark.parametrize("size", [0, -1, -(2**40), 2**40, 2**70])
def test_an_impossible_batch_size_is_refused_with_its_limits(filled, size):
    with pytest.raises(ValueError, match=f"batch_size is {size}; it must be between 1 and 16777216"):
        filled.sample(size)


@pytest.mark.parametrize("size", [1.5, "4", None])
def test_a_batch_size_that_is_no_whole_number_is_refused(filled, size):
    with pytest.raises(TypeError, match=f"batch_size is {size}; it must be a whole number"):
        filled.sample(size)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"observation": np.zeros((2, 4), np.float32)}, ValueError, r"observation.*\[2, 4\].*\[3\]"),
        ({"observation": np.zeros((3, 3), np.float32)}, ValueError, "observation|action"),
        ({"reward": np.zeros(3, np.float32)}, ValueError, "reward.*3 transitions"),
        ({"reward": "much"}, TypeError, "reward"),
        ({"terminated": 0.5}, TypeError, "terminated.*bool"),
        ({"unknown": 1}, ValueError, "no field `unknown`"),
    ],
)
def test_transitions_of_another_shape_are_refused(filled, change, error, words):
    with pytest.raises(error, match=words):
        filled.add({**numbered(0, 2), **change})
    assert filled.inserted == 8


def test_a_missing_field_is_named(filled):
    transitions = numbered(0, 1)
    del transitions["reward"]
    with pytest.raises(ValueError, match="`reward` is missing; a transition has `observation`, `action`"):
        filled.add(transitions)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"capacity": 0}, "capacity is 0"),
        ({"capacity": -1}, "capacity is -1; it must be between 2 and 16777216"),
        ({"capacity": 2**30}, "capacity"),
        ({"capacity": 8, "shared": True}, r"capacity \(above participants\) is 8; it must be between 17"),
        ({"rate_limiter": shoal.RateLimiter(min_size=-1)}, "rate_limiter.min_size is -1"),
        ({"fields": {"x": shoal.Field((-1,))}}, r"field `x` has shape \(-1,\)"),
        ({"alpha": 2.0}, "alpha is 2; it must be between 0 and 1"),
        ({"alpha": float("nan")}, "alpha"),
        ({"beta": -0.1}, "beta"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"fields": {}}, "at least one field"),
        ({"fields": {"x": ((0,), "float32")}}, "`x`.*shape"),
        ({"fields": {"x": ((3.7,), "float32")}}, r"field `x` has shape \(3.7,\); its axes must be whole numbers"),
        ({"fields": {"x": (3.7, "float32")}}, r"field `x` has shape \(3.7,\)"),
        ({"fields": {"x": (None, "float32")}}, r"field `x` has shape \(None,\)"),
        ({"fields": {"x": shoal.Frames((4, 4.5))}}, r"field `x` has shape \(4, 4.5\)"),
        ({"fields": {f"{number:0100}": "float32" for number in range(1000)}}, "give the replay fewer fields"),
        ({"frame_capacity": 100}, "frame_capacity"),
        ({"shared": True, "participants": 0}, "participants"),
        ({"shared": True, "participants": -1}, "participants is -1; it must be between 1 and 256"),
        ({"participants": 20}, "participants is given, and the replay is private; give shared=True too"),
        ({"rate_limiter": shoal.RateLimiter(10, samples_per_insert=-1.0)}, "samples_per_insert"),
        ({"n_step": shoal.NStep(3, reward="gain", terminated="terminated", truncated=None)}, "`gain`"),
        ({"n_step": shoal.NStep(0, terminated="terminated", truncated=None)}, "n_step.n"),
    ],
)
def test_impossible_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        shoal.Replay(**{"capacity": 100, "fields": FIELDS, **options})


def test_an_invalid_schedule_of_beta_is_refused_with_its_value():
    with pytest.raises(TypeError, match=r"beta is \(0.4, 1.0, 1000000.0\); it must be a number, or"):
        shoal.Replay(100, FIELDS, beta=(0.4, 1.0, 1e6))


@pytest.mark.parametrize("dtype", ["complex64", "U5", "datetime64[s]", ">f4", "object"])
def test_dtypes_that_cannot_be_stored_are_refused(dtype):
    with pytest.raises(TypeError, match="`x` has dtype"):
        shoal.Replay(100, {"x": dtype})


def test_values_in_another_byte_order_are_converted():
    replay = shoal.Replay(100, {"x": ((3,), "float32")})
    assert replay.get(replay.add({"x": np.arange(3, dtype=">f4")}))["x"].tolist() == [[0.0, 1.0, 2.0]]


@pytest.mark.parametrize(("shared", "words"), [(True, "no room for the segment.*/dev/shm"), (False, "memory and swap")])
def test_a_replay_larger_than_the_memory_is_refused(shared, words):
    with pytest.raises(MemoryError, match=words):
        shoal.Replay(2**24, {"x": ((2**20,), "float64")}, shared=shared)


def test_a_closed_replay_says_so(filled):
    filled.close()
    with pytest.raises(shoal.ReplayError, match="closed"):
        len(filled)


def test_a_private_replay_cannot_be_sent(filled):
    import pickle

    with pytest.raises(TypeError, match="shared=True"):
        pickle.dumps(filled)


def test_a_batch_is_neither_copied_nor_sent_and_says_what_can_be(filled):
    import copy
    import pickle

    batch = filled.sample(4)
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"dict\(batch\).*batch.indices, batch.generations and batch.weights"):
            take(batch)
    others = batch.indices, batch.generations, batch.weights
    columns, (indices, generations, _) = pickle.loads(pickle.dumps((dict(batch), others)))
    assert_whole(columns)
    assert filled.update_priorities(indices, np.ones(4), generations) == 0


def test_a_name_of_no_replay_is_not_found():
    with pytest.raises(FileNotFoundError, match="no shared replay `/shoal-replay-0-0-0`") as told:
        shoal.Replay.open("/shoal-replay-0-0-0")
    assert "run" not in str(told.value) and "load one that was saved" in str(told.value)


@pytest.mark.parametrize("free", [0, 1, 2])
def test_a_process_that_may_open_no_more_files_is_not_told_that_the_replay_is_missing_or_damaged(free):
    with shoal.Replay(64, FIELDS, shared=True) as replay:
        child = os.fork()
        if child == 0:
            try:
                lowest = os.dup(0)
                os.close(lowest)
                _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
                resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + free, most))
                with pytest.raises(OSError, match="Too many open files") as opened:
                    shoal.Replay.open(replay.name)
                assert opened.type is OSError
                # Making a replay needs no more than two.
                if free < 2:
                    with pytest.raises(OSError, match="Too many open files") as made:
                        shoal.Replay(64, FIELDS, shared=True)
                    assert made.type is OSError
                os._exit(0)
            except BaseException as error:  # noqa: BLE001 (told to the parent by the exit status)
                os.write(2, f"in a child: {error!r}\n".encode())
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_field_names_that_do_not_fit_the_description_are_a_value_error():
    with pytest.raises(ValueError, match="description"):
        shoal.Replay(8, {"x" * 70_000: "float32"})


def test_a_foreign_object_is_refused(tmp_path):
    import uuid

    name = f"/shoal-foreign-{uuid.uuid4().hex}"
    path = "/dev/shm" + name
    try:
        with open(path, "wb") as file:
            file.write(os.urandom(1 << 20))
        with pytest.raises(shoal.CorruptError, match="not a Shoal segment"):
            shoal.Replay.open(name)
    finally:
        os.unlink(path)


@pytest.mark.parametrize("shared", [False, True])
def test_an_unknown_option_is_refused(shared):
    with pytest.raises(TypeError, match="no_such_option"):
        shoal.Replay(8, {"value": "float32"}, shared=shared, no_such_option=True)
