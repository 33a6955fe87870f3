"""n-step transitions and the rate limiter."""

import threading

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import shoal

STEP_FIELDS = {
    "observation": "float32",
    "action": "int64",
    "reward": "float32",
    "terminated": "bool",
    "truncated": "bool",
    "discount": "float32",
    "next_observation": "float32",
}
STEP = {
    "observation": 1.0,
    "action": 1,
    "reward": 1.0,
    "terminated": False,
    "truncated": False,
    "next_observation": 2.0,
}


@pytest.mark.parametrize(
    "n_step", [None, shoal.NStep(3), shoal.NStep(2, 0.9, next_fields=(), truncated=None, discount="discount")]
)
def test_an_opened_or_loaded_replay_tells_how_its_steps_become_transitions(tmp_path, n_step):
    with shoal.Replay(100, STEP_FIELDS, n_step=n_step, shared=True) as replay:
        replay.save(tmp_path / "replay")
        with shoal.Replay.open(replay.name) as opened:
            assert opened.n_step == replay.n_step == n_step
    assert shoal.Replay.load(tmp_path / "replay").n_step == n_step


def play(replay, lengths, n_environments, gamma=0.9, steps=40, truncates=False):
    """Add `steps` steps per environment, in episodes of these lengths; returns the steps of each environment."""
    taken = [[] for _ in range(n_environments)]
    position = [0] * n_environments
    for step in range(steps):
        rows = []
        for environment in range(n_environments):
            ended = position[environment] + 1 == lengths[environment]
            rows.append(
                (
                    100.0 * environment + step,
                    step,
                    float(step + environment),
                    ended and not truncates,
                    ended and truncates,
                    0.0,
                    100.0 * environment + step + 0.5,
                )
            )
            taken[environment].append(rows[-1])
            position[environment] = 0 if ended else position[environment] + 1
        replay.add(
            {
                name: np.array([row[i] for row in rows], dtype=replay.fields[name].dtype)
                for i, name in enumerate(STEP_FIELDS)
            }
        )
    return taken


@pytest.mark.parametrize("truncates", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_n_step_transitions_are_those_worked_out_by_hand(n, truncates):
    gamma, lengths = 0.9, [7, 4]
    replay = shoal.Replay(1000, STEP_FIELDS, n_step=shoal.NStep(n, gamma, discount="discount"))
    taken = play(replay, lengths, 2, truncates=truncates)
    got = replay.get(np.arange(len(replay)))
    found = {row[:1]: row for row in zip(*[got[name].tolist() for name in STEP_FIELDS], strict=True)}
    expected = 0
    for steps in taken:
        for first, step in enumerate(steps):
            following = []
            for later in steps[first : first + n]:
                following.append(later)
                if later[3] or later[4]:
                    break
            last = following[-1]
            if len(following) < n and not (last[3] or last[4]):
                continue  # Not complete yet.
            expected += 1
            row = found[(step[0],)]
            assert row[1] == step[1]
            assert row[2] == pytest.approx(sum(gamma**k * later[2] for k, later in enumerate(following)), rel=1e-5)
            assert (row[3], row[4], row[6]) == (last[3], last[4], last[6])
            assert row[5] == pytest.approx(0.0 if last[3] else gamma ** len(following), rel=1e-5)
    assert len(found) == expected


def test_streams_name_the_environments_of_rows():
    replay = shoal.Replay(100, STEP_FIELDS, n_step=shoal.NStep(2, 1.0))
    step = {
        "observation": 1.0,
        "action": 1,
        "reward": 1.0,
        "terminated": False,
        "truncated": False,
        "discount": 0.0,
        "next_observation": 2.0,
    }
    assert len(replay.add(step, streams=[5])) == 0
    assert len(replay.add(step, streams=[6])) == 0
    assert len(replay.add(step, streams=[5])) == 1
    with pytest.raises(ValueError, match="2 streams for 1 transitions"):
        replay.add(step, streams=[1, 2])


def test_the_discount_need_not_be_given():
    replay = shoal.Replay(100, STEP_FIELDS, n_step=shoal.NStep(1, 0.9, discount="discount"))
    step = dict(STEP)
    replay.add(step)
    replay.add({name: np.array([value, value]) for name, value in step.items()})
    np.testing.assert_allclose(replay.get([0, 1, 2])["discount"], 0.9)
    del step["reward"]
    with pytest.raises(ValueError, match="`reward` is missing"):
        replay.add(step)


def test_the_rate_limiter_holds_both_sides_back():
    limiter = shoal.RateLimiter(min_size=10, samples_per_insert=2.0, error_band=20.0)
    replay = shoal.Replay(1000, {"x": "float32"}, rate_limiter=limiter)
    with pytest.raises(shoal.RateLimitError, match="at least 10 needed"):
        replay.sample(1, timeout=0.01)
    # Eleven beyond the ten call for 22 samples: more than the band.
    replay.add({"x": np.zeros(21, dtype=np.float32)})
    with pytest.raises(shoal.RateLimitError):
        replay.add({"x": np.zeros(1, dtype=np.float32)}, timeout=0.01)
    replay.sample(42)
    with pytest.raises(shoal.RateLimitError):
        replay.sample(1, timeout=0.01)
    assert (replay.inserted, replay.sampled) == (21, 42)


def test_a_reader_that_waits_goes_on_when_another_thread_has_added():
    replay = shoal.Replay(1000, {"x": "float32"}, rate_limiter=shoal.RateLimiter(min_size=100))
    batches = []
    reader = threading.Thread(target=lambda: batches.append(replay.sample(8)))
    reader.start()
    for _ in range(100):
        replay.add({"x": 1.0})
    reader.join(60)
    np.testing.assert_array_equal(batches[0]["x"], np.ones(8))


def test_priorities_are_refused_for_steps_of_n_step_transitions():
    replay = shoal.Replay(100, STEP_FIELDS, n_step=shoal.NStep(2, 0.9, discount="discount"))
    with pytest.raises(ValueError, match="add without priorities"):
        replay.add(STEP, [1.0])
    assert replay.inserted == 0


def test_the_default_error_band_is_at_least_one_sample():
    replay = shoal.Replay(100, {"value": "float32"}, rate_limiter=shoal.RateLimiter(samples_per_insert=0.01))
    replay.add({"value": np.arange(20)})


def test_steps_before_an_early_reset_are_no_part_of_a_transition_after_it():
    replay = shoal.Replay(16, STEP_FIELDS, n_step=shoal.NStep(3, discount="discount"))
    both = {name: np.array([value, value], replay.fields[name].dtype) for name, value in STEP.items()}
    assert len(replay.add(both)) == len(replay.add(both)) == 0
    replay.end_streams([0])
    assert len(replay.add(both)) == 1, "of the other environment"
    replay.end_streams()
    assert len(replay.add(both)) == len(replay.add(both)) == 0
    assert len(replay.add(both)) == 2


@pytest.mark.parametrize("is_added_again", [True, False])
def test_no_transition_reaches_over_a_refused_step_that_is_added_again_or_whose_stream_is_ended(is_added_again):
    limiter = shoal.RateLimiter(samples_per_insert=1.0, error_band=1.0)
    replay = shoal.Replay(100, STEP_FIELDS, n_step=shoal.NStep(2, discount="discount"), rate_limiter=limiter)
    steps = [{**STEP, "observation": float(number), "next_observation": number + 1.0} for number in range(7)]
    for step in steps[:4]:
        replay.add(step)
    # Two transitions beyond the first call for two samples: more than the band.
    with pytest.raises(shoal.RateLimitError):
        replay.add(steps[4], timeout=0.01)
    replay.sample(8)
    if is_added_again:
        replay.add(steps[4])
    else:
        replay.end_streams([0])
    for step in steps[5:]:
        replay.add(step)
    rows = replay.get(np.arange(len(replay)))
    assert rows["observation"].tolist() == ([0, 1, 2, 3, 4, 5] if is_added_again else [0, 1, 2, 5])
    np.testing.assert_array_equal(rows["next_observation"], rows["observation"] + 2)


class Counting(gymnasium.Env):
    """Observes 100 times the number of the episode plus its steps so far. An episode ends after `length` steps."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length):
        self.length, self.begun = length, 0

    def shown(self):
        return np.array(100.0 * self.begun + self.step_count)

    def reset(self, *, seed=None, options=None):
        self.begun += 1
        self.step_count = 0
        return self.shown(), {}

    def step(self, action):
        self.step_count += 1
        return self.shown(), 1.0, self.step_count == self.length, False, {}


@pytest.mark.parametrize("lengths", [(5, 3), (4, 4)], ids=["one after the other", "at the same time"])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_no_transition_of_a_vector_environment_reaches_into_the_next_episode(mode, lengths):
    """The steps are added as docs/python-replay.md shows."""
    environments = SyncVectorEnv([lambda length=length: Counting(length) for length in lengths], autoreset_mode=mode)
    replay = shoal.Replay(1000, STEP_FIELDS, n_step=shoal.NStep(2, 0.5, discount="discount"))
    observations, _ = environments.reset()
    had_ended = np.zeros(2, bool)
    for _ in range(40):
        following, rewards, terminated, truncated, info = environments.step(np.zeros(2, np.int64))
        ended = terminated | truncated
        next_observations = following
        if mode == AutoresetMode.SAME_STEP and ended.any():
            next_observations = following.copy()
            next_observations[ended] = np.stack(info["final_obs"][ended])
        steps = {
            "observation": observations,
            "action": np.zeros(2, np.int64),
            "reward": rewards,
            "terminated": terminated,
            "truncated": truncated,
            "next_observation": next_observations,
        }
        rows = np.flatnonzero(~had_ended)
        replay.add({name: column[rows] for name, column in steps.items()}, streams=rows)
        observations = following
        had_ended = ended if mode == AutoresetMode.NEXT_STEP else np.zeros(2, bool)
    got = replay.get(np.arange(len(replay)))
    first, last = got["observation"], got["next_observation"]
    assert len(replay) > 50 and set(np.unique(last - first)) == {1.0, 2.0}
    np.testing.assert_array_equal(first // 100, last // 100)
    # A transition of fewer steps ends an episode.
    assert got["terminated"][last - first == 1.0].all()
    np.testing.assert_array_equal(got["reward"], np.where(last - first == 1.0, 1.0, 1.5))
    assert set(last[got["terminated"]] % 100) == set(map(float, lengths))


def test_adding_no_rows_is_no_error():
    replay = shoal.Replay(16, STEP_FIELDS, n_step=shoal.NStep(2, discount="discount"))
    assert len(replay.add({name: np.array([value])[:0] for name, value in STEP.items()}, streams=[])) == 0
