"""Stable-Baselines3's off-policy algorithms with Shoal's replay."""

import pickle
from copy import deepcopy
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("shoal", reason="shoal is not built: run `maturin develop` in python/")
pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
import torch
from gymnasium import spaces
from stable_baselines3 import DDPG, DQN, SAC, TD3
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from shoal import Replay
from shoal.adapters.stable_baselines3 import (
    PrioritizedDDPG,
    PrioritizedDQN,
    PrioritizedSAC,
    PrioritizedTD3,
    ShoalReplayBuffer,
)

ENVS = 2
BOX = spaces.Box(-1, 1, (3,), np.float32)
DISCRETE = spaces.Discrete(4)
SPACES = {
    "box and discrete": (BOX, DISCRETE),
    "float64": (spaces.Box(-1, 1, (3,), np.float64), spaces.Box(-1, 1, (2,), np.float64)),
    "discrete and box": (spaces.Discrete(9), BOX),
    "multi": (spaces.MultiDiscrete([3, 4]), spaces.MultiBinary(3)),
    "image": (spaces.Box(0, 255, (4, 8, 8), np.uint8), DISCRETE),
    "dictionary": (
        spaces.Dict({"image": spaces.Box(0, 255, (4, 8, 8), np.uint8), "goal": BOX, "task": spaces.Discrete(3)}),
        DISCRETE,
    ),
}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def observe(space):
    if isinstance(space, spaces.Dict):
        parts = [space.sample() for _ in range(ENVS)]
        return {key: np.stack([part[key] for part in parts]) for key in space.spaces}
    return np.stack([space.sample() for _ in range(ENVS)])


def steps(observation_space, action_space, count, seed=0):
    """Steps whose rewards number them. Some end an episode, by a termination or by a timeout."""
    observation_space.seed(seed)
    action_space.seed(seed)
    for number in range(count):
        ended = [number % 5 == 4, number % 3 == 2]
        infos = [{"TimeLimit.truncated": number % 10 == 9}, {"TimeLimit.truncated": number % 6 == 5}]
        yield (
            observe(observation_space),
            observe(observation_space),
            np.stack([action_space.sample() for _ in range(ENVS)]),
            np.array([2.0 * number, 2.0 * number + 1]),
            np.array(ended),
            infos,
        )


def copied(step):
    return [{key: value.copy() for key, value in part.items()} if isinstance(part, dict) else part for part in step]


def assert_same(ours, theirs):
    """Assert that samples have the same values, shapes and dtypes."""
    for name in ("observations", "actions", "next_observations", "dones", "rewards", "discounts"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        for key in other if isinstance(other, dict) else [...]:
            a, b = (mine[key], other[key]) if isinstance(other, dict) else (mine, other)
            if b is None:
                assert a is None
                continue
            assert (a.shape, a.dtype) == (b.shape, b.dtype), name
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


def their_row(buffer, row, env_of_row, vec_normalize=None):
    """One transition of Stable-Baselines3's own buffer, of the environment `env_of_row` instead of a random one."""
    draw = np.random.randint
    np.random.randint = lambda *_, size, **__: np.full(size, env_of_row)
    try:
        return buffer._get_samples(np.array([row]), vec_normalize)
    finally:
        np.random.randint = draw


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("handle_timeout_termination", [True, False])
def test_samples_are_those_of_the_buffer_of_stable_baselines3(name, handle_timeout_termination):
    observation_space, action_space = SPACES[name]
    options = {"device": "cpu", "n_envs": ENVS, "handle_timeout_termination": handle_timeout_termination}
    ours = ShoalReplayBuffer(40, observation_space, action_space, **options)
    their_class = DictReplayBuffer if isinstance(observation_space, spaces.Dict) else ReplayBuffer
    theirs = their_class(40, observation_space, action_space, **options)
    for step in steps(observation_space, action_space, 33):
        ours.add(*copied(step))
        theirs.add(*copied(step))
        assert (ours.pos, ours.full, ours.size()) == (theirs.pos, theirs.full, theirs.size())
    samples = ours.sample(64)
    for place, reward in enumerate(samples.rewards.flatten().tolist()):
        number, env = divmod(int(reward), 2)
        row = type(samples)(*(part_of(part, place) for part in samples[:6]), None, None)
        assert_same(row, their_row(theirs, number % 20, env))


def part_of(part, place):
    if part is None:
        return None
    return (
        {key: value[place : place + 1] for key, value in part.items()}
        if isinstance(part, dict)
        else part[place : place + 1]
    )


def test_n_step_transitions_are_those_of_stable_baselines3():
    ours = ShoalReplayBuffer(200, BOX, DISCRETE, "cpu", ENVS, n_steps=3, gamma=0.9)
    theirs = NStepReplayBuffer(200, BOX, DISCRETE, "cpu", ENVS, n_steps=3, gamma=0.9)
    taken = list(steps(BOX, DISCRETE, 40))
    for step in taken:
        ours.add(*step)
        theirs.add(*step)
    samples = ours.sample(64)
    starts = {step[0][env].tobytes(): (number, env) for number, step in enumerate(taken) for env in range(ENVS)}
    for place in range(64):
        number, env = starts[samples.observations[place].numpy().tobytes()]
        expected = their_row(theirs, number, env)
        row = type(samples)(*(part_of(part, place) for part in samples[:6]), None, None)
        # After a termination the discount has no effect. Shoal's is then zero.
        if expected.dones.item() == 1.0:
            row = row._replace(discounts=expected.discounts)
        assert_same(row, expected)


def test_n_step_rewards_are_discounted_with_the_gamma_of_the_algorithm():
    with pytest.raises(ValueError, match="n_steps=3.*gamma is missing"):
        ShoalReplayBuffer(200, BOX, DISCRETE, "cpu", ENVS, n_steps=3)
    given = {"n_steps": 3}
    options = {"gamma": 0.5, "learning_starts": 1000, "seed": 1, "device": "cpu"}
    model = PrioritizedDQN("MlpPolicy", "CartPole-v1", replay_buffer_kwargs=given, **options)
    assert given == {"n_steps": 3} == model.replay_buffer_kwargs, "a model that is loaded may have another gamma"
    model.learn(100)
    samples = model.replay_buffer.sample(32)
    goes_on = samples.dones == 0
    assert goes_on.any() and (samples.rewards[goes_on] == 1.75).all() and (samples.discounts[goes_on] == 0.125).all()
    model = PrioritizedDQN("MlpPolicy", "CartPole-v1", replay_buffer_kwargs={"n_steps": 2, "gamma": 0.25}, **options)
    model.learn(100)
    samples = model.replay_buffer.sample(32)
    assert (samples.rewards[samples.dones == 0] == 1.25).all(), "what is given counts"


@pytest.mark.filterwarnings("error:.n_steps=3. is ignored")
def test_n_steps_may_also_be_the_argument_of_a_prioritized_algorithm():
    options = {"gamma": 0.5, "learning_starts": 1000, "seed": 1, "device": "cpu"}
    model = PrioritizedDQN("MlpPolicy", "CartPole-v1", n_steps=3, **options)
    assert (model.n_steps, model.replay_buffer_kwargs) == (3, {})
    model.learn(100)
    samples = model.replay_buffer.sample(32)
    goes_on = samples.dones == 0
    assert goes_on.any() and (samples.rewards[goes_on] == 1.75).all()


def test_n_steps_are_refused_where_algorithms_read_no_discounts(monkeypatch):
    class Earlier(NamedTuple):
        rewards: torch.Tensor

    monkeypatch.setattr("shoal.adapters.stable_baselines3.buffer.ReplayBufferSamples", Earlier)
    with pytest.raises(ValueError, match="n_steps=3 needs Stable-Baselines3 2.7 or later.*is installed"):
        ShoalReplayBuffer(200, BOX, DISCRETE, "cpu", ENVS, n_steps=3, gamma=0.9)
    ShoalReplayBuffer(200, BOX, DISCRETE, "cpu", ENVS)


def test_no_n_step_transition_spans_the_reset_at_the_start_of_learning():
    options = {"train_freq": 1, "learning_starts": 1000, "seed": 1, "device": "cpu"}
    model = PrioritizedDQN("MlpPolicy", "CartPole-v1", replay_buffer_kwargs={"n_steps": 5}, **options)
    # No episode is so short, so no transition is complete.
    for _ in range(2):
        model.learn(4)
        assert model.replay_buffer.size() == 0
    model.learn(1, reset_num_timesteps=False)
    assert model.replay_buffer.size() == 1, "the environments were not reset"


def test_frames_of_a_stack_come_out_in_order():
    space = spaces.Box(0, 255, (4, 6, 6), np.uint8)
    ours = ShoalReplayBuffer(30, space, DISCRETE, "cpu", 1, frame_stack=4)
    generator = np.random.default_rng(0)
    stack, expected = generator.integers(0, 256, (4, 6, 6), np.uint8), []
    for number in range(50):
        following = np.concatenate([stack[1:], generator.integers(0, 256, (1, 6, 6), np.uint8)])
        ended = number % 7 == 6
        ours.add(stack[None], following[None], np.array([1]), np.array([float(number)]), np.array([ended]), [{}])
        expected.append((stack, following))
        stack = generator.integers(0, 256, (4, 6, 6), np.uint8) if ended else following
    samples = ours.sample(200)
    assert len(set(samples.rewards.flatten().tolist())) > 20
    for place, reward in enumerate(samples.rewards.flatten().tolist()):
        np.testing.assert_array_equal(samples.observations[place], expected[int(reward)][0])
        np.testing.assert_array_equal(samples.next_observations[place], expected[int(reward)][1])


def test_frames_take_a_quarter_of_the_memory_or_less():
    space = spaces.Box(0, 255, (4, 32, 32), np.uint8)
    # The room for frames of a smaller replay follows from the number of environments.
    plain = ShoalReplayBuffer(16_384, space, DISCRETE, "cpu", 1)
    frames = ShoalReplayBuffer(16_384, space, DISCRETE, "cpu", 1, frame_stack=4)
    assert frames.replay.nbytes < plain.replay.nbytes / 4


@pytest.mark.parametrize("shape", [(3, 8, 8), (8,)])
def test_an_observation_that_is_no_stack_of_frames_is_refused(shape):
    with pytest.raises(ValueError, match=r"frame_stack|stack of 4"):
        ShoalReplayBuffer(8, spaces.Box(0, 255, shape, np.uint8), DISCRETE, "cpu", 1, frame_stack=4)


def test_optimize_memory_usage_is_refused():
    with pytest.raises(ValueError, match="frame_stack"):
        ShoalReplayBuffer(8, BOX, DISCRETE, "cpu", 1, optimize_memory_usage=True)


def test_a_timeout_is_no_termination():
    buffer = ShoalReplayBuffer(8, BOX, DISCRETE, "cpu", ENVS)
    zeros = np.zeros((ENVS, 3), np.float32)
    infos = [{"TimeLimit.truncated": True}, {"TimeLimit.truncated": False}]
    buffer.add(zeros, zeros, np.zeros(ENVS, int), np.array([0.0, 1.0]), np.array([True, True]), infos)
    samples = buffer.sample(32)
    assert set(samples.rewards.flatten().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(samples.dones, samples.rewards)


@pytest.mark.parametrize("observation_space", [BOX, SPACES["dictionary"][0]], ids=["box", "dictionary"])
def test_samples_are_normalized_by_the_environment(observation_space):
    class Normalizer:
        normalize_obs = staticmethod(
            lambda obs: {key: value * 3.0 for key, value in obs.items()} if isinstance(obs, dict) else obs * 3.0
        )
        normalize_reward = staticmethod(lambda reward: reward / 8.0)

    buffer = ShoalReplayBuffer(8, observation_space, DISCRETE, "cpu", ENVS, prioritized=False)
    for step in steps(observation_space, DISCRETE, 4):
        buffer.add(*copied(step))
    indices = np.array([5, 0, 3])
    plain, normalized = buffer._get_samples(indices), buffer._get_samples(indices, Normalizer)
    for name in ("observations", "next_observations"):
        a, b = getattr(plain, name), getattr(normalized, name)
        for key in a if isinstance(a, dict) else [...]:
            torch.testing.assert_close(a[key] * 3.0, b[key], check_dtype=False)
    torch.testing.assert_close(plain.rewards / 8.0, normalized.rewards)


def filled(count=12, **kwargs):
    buffer = ShoalReplayBuffer(count * ENVS, BOX, DISCRETE, "cpu", ENVS, seed=5, **kwargs)
    for step in steps(BOX, DISCRETE, count):
        buffer.add(*step)
    return buffer


def test_td_errors_reach_the_tree_and_weights_follow_the_formula():
    buffer = filled(alpha=0.7, beta=0.5, epsilon=1e-3)
    tree = buffer.replay.priorities()
    np.testing.assert_allclose(tree, np.ones(24), atol=1e-3)
    samples = buffer.sample(16)
    errors = torch.linspace(-4.0, 4.0, 16)[:, None]
    buffer.update_priorities(samples, errors)
    for index, error in zip(samples.batch.indices, errors.flatten().tolist(), strict=True):
        tree[index] = (abs(error) + 1e-3) ** 0.7
    np.testing.assert_allclose(buffer.replay.priorities(), tree, rtol=1e-5, atol=2e-6)
    for beta in (None, 0.9):
        samples = buffer.sample(64, beta=beta)
        weights = (24 * tree[samples.batch.indices] / tree.sum()) ** -(beta or 0.5)
        np.testing.assert_allclose(samples.weights.flatten(), weights / weights.max(), rtol=1e-4)
        assert samples.weights.shape == (64, 1)


def test_a_pickled_buffer_goes_on_where_it_was():
    buffer = filled()
    buffer.update_priorities(buffer.sample(16), torch.linspace(0.0, 3.0, 16))
    again = pickle.loads(pickle.dumps(buffer))
    np.testing.assert_array_equal(again.replay.priorities(), buffer.replay.priorities())
    everything = np.arange(24)
    assert_same(again._get_samples(everything), buffer._get_samples(everything))
    assert (again.pos, again.full, again.size()) == (buffer.pos, buffer.full, buffer.size())
    again.add(*next(steps(BOX, DISCRETE, 1)))
    assert again.size() == buffer.size()


def test_the_global_generator_of_numpy_seeds_a_loaded_buffer():
    saved = pickle.dumps(filled())

    def drawn(seed):
        np.random.seed(seed)
        return pickle.loads(saved).sample(64).batch.indices.tolist()

    assert drawn(3) == drawn(3) != drawn(4)


def test_a_shared_buffer_can_be_opened_by_its_name():
    buffer = filled(shared=True)
    with Replay.open(buffer.replay.name) as other:
        np.testing.assert_array_equal(other.get(np.arange(24))["reward"], buffer.replay.get(np.arange(24))["reward"])
        other.update_priorities(np.arange(24), np.full(24, 3.0))
    np.testing.assert_allclose(buffer.replay.priorities(), np.full(24, 3.0**0.6), rtol=1e-5)
    buffer.replay.close()


def test_td_errors_of_overwritten_transitions_are_left_out():
    buffer = filled(shared=True)
    samples = buffer.sample(8)
    with Replay.open(buffer.replay.name) as other:
        rows = other.get(np.arange(24))
        for _ in range(buffer.replay.capacity // 24 + 1):
            other.add({name: rows[name] for name in rows})
    before = buffer.replay.priorities()
    buffer.update_priorities(samples, torch.full((8,), 9.0))
    np.testing.assert_array_equal(buffer.replay.priorities(), before)
    buffer.replay.close()


def test_nothing_is_left_after_reset():
    buffer = filled()
    buffer.reset()
    assert (buffer.size(), buffer.pos, buffer.full) == (0, 0, False)


DQN_OPTIONS = {
    "learning_starts": 64,
    "batch_size": 32,
    "buffer_size": 2000,
    "train_freq": 4,
    "target_update_interval": 50,
}
CONTINUOUS_OPTIONS = {
    "learning_starts": 64,
    "batch_size": 32,
    "buffer_size": 2000,
    "policy_kwargs": {"net_arch": [32, 32]},
}
PAIRS = {
    "DQN": (PrioritizedDQN, DQN, "CartPole-v1", DQN_OPTIONS),
    "SAC": (PrioritizedSAC, SAC, "Pendulum-v1", CONTINUOUS_OPTIONS),
    "SAC, fixed temperature": (PrioritizedSAC, SAC, "Pendulum-v1", {**CONTINUOUS_OPTIONS, "ent_coef": 0.1}),
    "TD3": (PrioritizedTD3, TD3, "Pendulum-v1", CONTINUOUS_OPTIONS),
    "DDPG": (PrioritizedDDPG, DDPG, "Pendulum-v1", CONTINUOUS_OPTIONS),
}


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("name", PAIRS)
def test_without_priorities_training_is_that_of_stable_baselines3(name, n_steps):
    ours, theirs, env, options = PAIRS[name]
    options = {**options, "replay_buffer_class": ShoalReplayBuffer}
    options["replay_buffer_kwargs"] = {"prioritized": False, "n_steps": n_steps, "gamma": 0.99}
    # One after the other, because they share the global generators that `seed` sets.
    mine, other = (
        algorithm("MlpPolicy", env, seed=3, device="cpu", **deepcopy(options)).learn(200).policy.state_dict()
        for algorithm in (ours, theirs)
    )
    for (key, a), b in zip(mine.items(), other.values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5, msg=key)


@pytest.mark.parametrize("name", PAIRS)
def test_training_logs_what_stable_baselines3_logs_and_the_replay(name):
    ours, theirs, env, options = PAIRS[name]

    def logged(algorithm):
        model = algorithm("MlpPolicy", env, seed=3, device="cpu", **deepcopy(options)).learn(80)
        # Two updates, because TD3 trains its actor in every second one.
        model.train(2, 32)
        return {key for key in model.logger.name_to_value if not key.startswith(("rollout/", "time/"))}

    assert logged(ours) == logged(theirs) | {"replay/beta", "replay/max_priority"}


@pytest.mark.parametrize("name", PAIRS)
def test_training_changes_priorities_and_beta_reaches_one(name):
    algorithm, _, env, options = PAIRS[name]
    model = algorithm(
        "MlpPolicy", env, seed=3, device="cpu", replay_buffer_kwargs={"alpha": 0.7, "beta": 0.5}, **deepcopy(options)
    )
    assert model.beta == pytest.approx(0.5)
    model.learn(200)
    assert model.beta == pytest.approx(1.0)
    assert len(np.unique(model.replay_buffer.replay.priorities())) > 50


def test_the_loss_of_dqn_is_weighted_and_its_errors_become_priorities():
    model = PrioritizedDQN("MlpPolicy", "CartPole-v1", seed=3, device="cpu", learning_rate=1e-9, **DQN_OPTIONS)
    model.learn(80)
    drawn = []
    sample = model.replay_buffer.sample
    model.replay_buffer.sample = lambda *args, **kwargs: drawn.append(sample(*args, **kwargs)) or drawn[-1]
    # The first update makes priorities unequal, so that the second has weights other than one.
    model.train(1, 32)
    model.train(1, 32)
    samples = drawn[-1]
    with torch.no_grad():
        best = model.q_net_target(samples.next_observations).max(1, keepdim=True).values
        targets = samples.rewards + (1 - samples.dones) * 0.99 * best
        errors = model.q_net(samples.observations).gather(1, samples.actions.long()) - targets
    assert samples.weights.unique().numel() > 1
    huber = torch.where(errors.abs() < 1, 0.5 * errors**2, errors.abs() - 0.5)
    assert model.logger.name_to_value["train/loss"] == pytest.approx((samples.weights * huber).mean().item(), rel=1e-4)
    priorities = model.replay_buffer.replay.priorities(samples.batch.indices)
    np.testing.assert_allclose(priorities, (errors.abs().flatten() + 1e-6) ** 0.6, rtol=1e-3)


@pytest.mark.parametrize("name", ["SAC", "TD3", "DDPG"])
def test_the_loss_of_critics_is_weighted_and_their_errors_become_priorities(name):
    algorithm, _, env, options = PAIRS[name]
    model = algorithm("MlpPolicy", env, seed=3, device="cpu", **deepcopy(options))
    model.learn(100)
    samples = model.sample_prioritized(32)
    assert samples.weights.unique().numel() > 1
    targets = torch.full((32, 1), 0.7)
    with torch.no_grad():
        errors = [values - targets for values in model.critic(samples.observations, samples.actions)]
    loss = model.update_critic(samples, targets)
    scale = 0.5 if name == "SAC" else 1.0
    assert loss == pytest.approx(scale * sum((samples.weights * error**2).mean().item() for error in errors), rel=1e-4)
    expected = sum(error.abs() for error in errors).flatten().numpy() / len(errors)
    priorities = model.replay_buffer.replay.priorities(samples.batch.indices)
    np.testing.assert_allclose(priorities, (expected + 1e-6) ** 0.6, rtol=1e-3)


@pytest.mark.parametrize("final_beta", [0.9, None])
def test_weights_follow_the_current_beta(final_beta):
    kwargs = {"alpha": 0.7, "beta": 0.5}
    model = PrioritizedDQN(
        "MlpPolicy",
        "CartPole-v1",
        seed=3,
        device="cpu",
        final_beta=final_beta,
        replay_buffer_kwargs=kwargs,
        **DQN_OPTIONS,
    )
    model.learn(200)
    samples = model.sample_prioritized(64)
    tree = model.replay_buffer.replay.priorities()
    weights = (200 * tree[samples.batch.indices] / tree.sum()) ** -(final_beta or 0.5)
    np.testing.assert_allclose(samples.weights.flatten(), weights / weights.max(), rtol=1e-4)


@pytest.mark.parametrize("final_beta", [1.1, -0.1, float("nan")])
def test_a_final_beta_that_no_draw_takes_is_refused_when_it_is_given(final_beta):
    with pytest.raises(ValueError, match="beta is .*between 0 and 1"):
        PrioritizedDQN("MlpPolicy", "CartPole-v1", device="cpu", final_beta=final_beta, **DQN_OPTIONS)


def test_model_and_buffer_are_saved_and_go_on(tmp_path):
    kwargs = {"alpha": 0.7, "beta": 0.5}
    model = PrioritizedDQN(
        "MlpPolicy", "CartPole-v1", seed=3, device="cpu", final_beta=0.9, replay_buffer_kwargs=kwargs, **DQN_OPTIONS
    )
    model.learn(200)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "buffer")
    again = PrioritizedDQN.load(tmp_path / "model", env=model.get_env(), device="cpu")
    again.load_replay_buffer(tmp_path / "buffer")
    assert (again.final_beta, again.replay_buffer.size()) == (0.9, 200)
    assert again.replay_buffer.replay.alpha == pytest.approx(0.7)
    np.testing.assert_array_equal(again.replay_buffer.replay.priorities(), model.replay_buffer.replay.priorities())
    again.learn(100, reset_num_timesteps=False)
    assert again.replay_buffer.size() == 300


def test_another_replay_buffer_is_refused():
    with pytest.raises(TypeError, match="ReplayBuffer is none"):
        PrioritizedDQN("MlpPolicy", "CartPole-v1", replay_buffer_class=ReplayBuffer)


def test_training_with_normalized_environments_runs():
    env = VecNormalize(make_vec_env("Pendulum-v1", 2, seed=1))
    model = PrioritizedSAC("MlpPolicy", env, seed=1, device="cpu", **deepcopy(CONTINUOUS_OPTIONS))
    model.learn(200)
    raw = model.replay_buffer.sample(256)
    # Normalized rewards would lie around zero, with a deviation of one.
    assert raw.rewards.min() < -4


def mean_return(model, episodes):
    return np.mean([info["r"] for info in list(model.ep_info_buffer)[-episodes:]])


def test_dqn_learns_cartpole():
    model = PrioritizedDQN(
        "MlpPolicy",
        make_vec_env("CartPole-v1", 4, seed=1),
        learning_rate=1e-3,
        buffer_size=20_000,
        learning_starts=500,
        batch_size=64,
        train_freq=4,
        gradient_steps=8,
        target_update_interval=200,
        exploration_fraction=0.3,
        exploration_final_eps=0.04,
        policy_kwargs={"net_arch": [64, 64]},
        replay_buffer_kwargs={"alpha": 0.6, "beta": 0.4},
        seed=1,
        device="cpu",
    )
    model.learn(12_000)
    # A random policy returns about 22.
    assert mean_return(model, 20) > 80


def test_sac_learns_pendulum():
    options = {
        "learning_rate": 2e-3,
        "learning_starts": 400,
        "batch_size": 64,
        "policy_kwargs": {"net_arch": [64, 64]},
    }
    model = PrioritizedSAC("MlpPolicy", "Pendulum-v1", seed=1, device="cpu", buffer_size=10_000, **options)
    model.learn(4_000)
    # A random policy returns about -1200.
    assert mean_return(model, 5) > -700
