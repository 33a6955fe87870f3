"""Saving and loading."""

import os
import shutil

import numpy as np
import pytest
from transitions import FIELDS, assert_whole, numbered

import shoal


@pytest.fixture
def saved(tmp_path):
    replay = shoal.Replay(64, FIELDS, alpha=0.7, beta=(0.4, 1.0, 1000), seed=1)
    for first in range(0, 100, 10):
        replay.add(numbered(first, 10), np.arange(10, dtype=np.float32) + 1)
    batch = replay.sample(32)
    replay.update_priorities(batch, np.full(32, 20.0))
    replay.save(tmp_path / "replay")
    return replay, tmp_path / "replay", batch


@pytest.mark.parametrize("shared", [False, True])
def test_transitions_priorities_and_counts_come_back(saved, shared):
    replay, path, batch = saved
    with shoal.Replay.load(path, shared=shared) as loaded:
        for name in ["capacity", "alpha", "beta", "inserted", "sampled", "max_priority", "total_priority", "fields"]:
            assert getattr(loaded, name) == getattr(replay, name), name
        np.testing.assert_array_equal(loaded.priorities(), replay.priorities())
        assert_whole(loaded.sample(200))
        # A batch from before still identifies its transitions, and insertion goes on where it was.
        assert loaded.update_priorities(batch, np.ones(32)) == 0
        np.testing.assert_array_equal(loaded.add(numbered(100, 3)), replay.add(numbered(100, 3)))


def test_every_changed_or_missing_byte_is_noticed(saved):
    _, path, _ = saved
    content = path.read_bytes()
    random = np.random.default_rng(0)
    for position in random.integers(0, len(content), 60):
        damaged = bytearray(content)
        damaged[position] ^= 1 << random.integers(0, 8)
        path.write_bytes(damaged)
        with pytest.raises(shoal.CorruptError):
            shoal.Replay.load(path)
    for length in [0, 1, 11, 40, len(content) // 2, len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(shoal.CorruptError):
            shoal.Replay.load(path)


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(saved, tmp_path):
    replay, path, _ = saved
    old = path.read_bytes()
    child = os.fork()
    if child == 0:
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            replay.save(path)
        except OSError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["replay"]


def test_a_number_of_participants_is_refused_for_a_private_replay(saved):
    with pytest.raises(ValueError, match="participants is given, and the replay is private"):
        shoal.Replay.load(saved[1], participants=3)


def test_a_missing_file_or_folder_is_named(tmp_path, replay):
    with pytest.raises(FileNotFoundError, match="missing"):
        shoal.Replay.load(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        replay.save(tmp_path / "nowhere" / "replay")


def trained(preset, **tables):
    """The file of the replay in the checkpoint that a short run leaves."""
    short = {"stop_env_steps": 2000, "stop_eval_return": "none"}
    run = shoal.train(preset, run=short, checkpoint={"replay": "always"}, quiet=True, **tables)
    (path,) = run.folder.glob("checkpoints/*/replay.shoal")
    return path


@pytest.mark.parametrize(("preset", "stack"), [("cartpole_dqn", 0), ("catch_dqn", 2)])
def test_the_replay_of_a_checkpoint_is_read_and_drawn_from_after_its_run(folder, preset, stack):
    path = trained(preset, environment={"frame_stack": stack} if stack else {})
    loaded = shoal.Replay.load(path)
    assert len(loaded) == loaded.inserted > 1000
    rows = loaded.get(np.arange(len(loaded)))
    if stack:
        assert loaded.fields["observation"].stack == stack
        one_step = rows["discount"] > 0.985
        np.testing.assert_array_equal(rows["next_observation"][one_step, 0], rows["observation"][one_step, 1])
    else:
        # Each step is worth 1.
        np.testing.assert_allclose(rows["reward"], (1 - rows["discount"]) / 0.01, rtol=1e-3)
    beta = loaded.beta
    # More than the run would let its learners draw, and no actor inserts any more.
    for _ in range(3):
        assert np.isin(loaded.sample(5000, timeout=60)["flags"], [0, 1, 2]).all()
    assert loaded.beta == beta
    shutil.copy(path, folder / "alone")
    with pytest.raises(shoal.ReplayError, match=r"the replay of a run's checkpoint, .*manifest\.json"):
        shoal.Replay.load(folder / "alone")


def test_the_fragments_of_a_checkpoint_are_refused(folder):
    with pytest.raises(shoal.ReplayError, match="learns from fragments of trajectories"):
        shoal.Replay.load(trained("cartpole_ppo"))
