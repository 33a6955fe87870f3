"""Tianshou's algorithms with Shoal's sampler."""

import pickle

import numpy as np
import pytest

pytest.importorskip("shoal", reason="shoal is not built: run `maturin develop` in python/")
pytest.importorskip("tianshou", reason="tianshou is not installed")
import gymnasium as gym
import torch
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from shoal.adapters.tianshou import ShoalVectorReplayBuffer

ALPHA, BETA, EPSILON = 0.6, 0.4, 1e-6


def step(number, envs):
    """Step `number` of these environments. Every value tells the step and the environment."""
    envs = np.asarray(envs)
    identity = 100.0 * envs + number
    return Batch(
        obs=np.stack([identity, -identity], axis=1).astype(np.float32),
        act=envs + number,
        rew=identity,
        terminated=(number + envs) % 5 == 4,
        truncated=(number + envs) % 7 == 6,
        obs_next=np.stack([identity + 1, -identity - 1], axis=1).astype(np.float32),
        info=Batch(),
    )


def pair(steps=30, **kwargs):
    """Shoal's and Tianshou's buffers with the same steps of three environments, of which one does fewer steps."""
    ours = ShoalVectorReplayBuffer(24, 3, alpha=ALPHA, beta=BETA, **kwargs)
    theirs = VectorReplayBuffer(24, 3)
    for number in range(steps):
        envs = [0, 1, 2] if number % 3 == 0 else [2, 0]
        np.testing.assert_array_equal(ours.add(step(number, envs), envs)[0], theirs.add(step(number, envs), envs)[0])
    return ours, theirs


def test_stored_transitions_and_their_order_are_those_of_tianshou():
    ours, theirs = pair()
    indices = ours.sample_indices(0)
    np.testing.assert_array_equal(indices, theirs.sample_indices(0))
    for name in ("obs", "act", "rew", "terminated", "truncated", "done", "obs_next"):
        np.testing.assert_array_equal(ours[indices][name], theirs[indices][name])
    np.testing.assert_array_equal(ours.next(indices), theirs.next(indices))
    np.testing.assert_array_equal(ours.prev(indices), theirs.prev(indices))
    np.testing.assert_array_equal(ours.unfinished_index(), theirs.unfinished_index())


def test_new_transitions_have_the_largest_priority_and_unwritten_ones_none():
    ours, _ = pair(steps=4)
    stored = ours.sample_indices(0)
    ours.update_weight(stored[:2], torch.tensor([-5.0, 0.25]))
    added = ours.add(step(4, [1]), [1])[0]
    values = ours.priorities.values()
    assert set(np.flatnonzero(values)) == {*stored, *added}
    np.testing.assert_allclose(
        values[[stored[0], stored[1], added[0]]], (np.array([5.0, 0.25, 5.0]) + EPSILON) ** ALPHA, atol=2e-6
    )


def test_a_sample_carries_weights_of_the_formula():
    ours, _ = pair()
    stored = ours.sample_indices(0)
    errors = np.linspace(0.1, 3.0, len(stored))
    ours.update_weight(stored, errors)
    batch, indices = ours.sample(32)
    tree = np.zeros(ours.maxsize)
    tree[stored] = (errors + EPSILON) ** ALPHA
    weights = (len(stored) * tree[indices] / tree.sum()) ** -BETA
    np.testing.assert_allclose(batch.weight, weights / weights.max(), rtol=1e-4)
    np.testing.assert_array_equal(batch.rew, ours.rew[indices])


@pytest.mark.parametrize("beta", [1.1, -0.1, float("nan")])
def test_a_beta_that_no_draw_takes_is_refused_when_it_is_given(beta):
    with pytest.raises(ValueError, match="beta is .*between 0 and 1"):
        ShoalVectorReplayBuffer(24, 3, alpha=ALPHA, beta=beta)
    ours, _ = pair()
    with pytest.raises(ValueError, match="beta is .*between 0 and 1"):
        ours.set_beta(beta)
    ours.sample(8)


def test_weights_are_not_divided_without_weight_norm():
    ours, _ = pair(weight_norm=False)
    stored = ours.sample_indices(0)
    errors = np.linspace(0.1, 3.0, len(stored))
    ours.update_weight(stored, errors)
    priorities = (errors + EPSILON) ** ALPHA
    np.testing.assert_allclose(ours[stored].weight, (len(stored) * priorities / priorities.sum()) ** -BETA, rtol=1e-4)


def test_beta_can_be_annealed():
    ours, _ = pair()
    ours.update_weight(ours.sample_indices(0)[:5], np.full(5, 9.0))
    ours.set_beta(0.0)
    np.testing.assert_array_equal(ours.sample(16)[0].weight, np.ones(16))


def test_nothing_is_left_after_reset():
    ours, _ = pair()
    ours.reset()
    assert len(ours) == 0 and not ours.priorities.values().any()
    added = ours.add(step(0, [2]), [2])[0]
    np.testing.assert_array_equal(ours.sample(4)[1], np.repeat(added, 4))


@pytest.mark.parametrize("way", ["pickle", "hdf5"])
def test_a_saved_buffer_has_the_same_transitions_and_priorities(way, tmp_path):
    ours, _ = pair()
    stored = ours.sample_indices(0)
    ours.update_weight(stored, np.linspace(0.1, 3.0, len(stored)))
    if way == "pickle":
        again = pickle.loads(pickle.dumps(ours))
    else:
        ours.save_hdf5(str(tmp_path / "buffer.hdf5"))
        again = ShoalVectorReplayBuffer.load_hdf5(str(tmp_path / "buffer.hdf5"))
    np.testing.assert_array_equal(again[stored].obs, ours[stored].obs)
    np.testing.assert_allclose(again.priorities.values(), ours.priorities.values(), atol=2e-6)


def make_dqn(env, n_steps):
    net = Net(state_shape=env.observation_space.shape, action_shape=env.action_space.n, hidden_sizes=[128, 128])
    policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_training=0.1, eps_inference=0.0)
    return DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=1e-3),
        gamma=0.95,
        n_step_return_horizon=n_steps,
        target_update_freq=320,
    )


@pytest.mark.parametrize("n_steps", [1, 3])
def test_an_update_sets_the_priorities_of_the_drawn_transitions(n_steps):
    torch.manual_seed(0)
    env = gym.make("CartPole-v1")
    algorithm = make_dqn(env, n_steps)
    buffer = ShoalVectorReplayBuffer(200, 2, alpha=ALPHA, beta=BETA)
    envs = DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(2)])
    Collector(algorithm, envs, buffer).collect(n_step=100, reset_before_collect=True)
    batch, indices = buffer.sample(16)
    weights = torch.as_tensor(batch.weight.copy())
    batch = algorithm._preprocess_batch(batch, buffer, indices)
    with torch.no_grad():
        values = algorithm.policy(batch).logits[np.arange(16), batch.act]
    errors = (batch.returns.flatten() - values).abs().numpy()
    algorithm._update_with_batch(batch)
    algorithm._postprocess_batch(batch, buffer, indices)
    assert weights.shape == (16,)
    np.testing.assert_allclose(buffer.priorities.values()[indices], (errors + EPSILON) ** ALPHA, rtol=1e-4, atol=2e-6)


def test_dqn_learns_cartpole():
    np.random.seed(1)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    training = DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(8)])
    testing = DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(10)])
    training.seed(1)
    testing.seed(2)
    algorithm = make_dqn(gym.make("CartPole-v1"), n_steps=3)
    buffer = ShoalVectorReplayBuffer(20_000, 8, alpha=ALPHA, beta=BETA)
    collector = Collector(algorithm, training, buffer)
    collector.collect(n_step=1000, reset_before_collect=True, random=True)
    result = algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            test_collector=Collector(algorithm, testing),
            max_epochs=8,
            epoch_num_steps=2000,
            collection_step_num_env_steps=16,
            test_step_num_episodes=10,
            batch_size=64,
            update_step_num_gradient_steps_per_sample=0.2,
            training_fn=lambda epoch, env_step: buffer.set_beta(min(1.0, BETA + 0.6 * env_step / 16_000)),
            stop_fn=lambda mean: mean >= 200,
            show_progress=False,
            verbose=False,
        )
    )
    # A random policy returns about 22.
    assert result.best_reward > 150
