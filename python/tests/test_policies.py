"""Saved policies in Python: the same actions as the program's, in NumPy, PyTorch and ONNX."""

import gymnasium
import numpy as np
import pytest
from test_command import folder  # noqa: F401

import shoal

# Presets and what is changed in them, by names of their own.
RUNS = {
    "cartpole_dqn": {"network": {"dueling": True}},
    "cartpole_ppo": {"algorithm": {"normalise_observations": True}},
    "pendulum_ppo": {},
    "pendulum_sac": {"learner": {"batch_size": 16}},
    "pendulum_td3": {"learner": {"batch_size": 16}},
    "catch_dqn": {},
    "catch_appo, normalised and stacked": {
        "algorithm": {"normalise_observations": True},
        "environment": {"frame_stack": 3},
    },
    "pendulum_sac, stacked": {"learner": {"batch_size": 16}, "environment": {"frame_stack": 4}},
}


def short_run(name):
    return shoal.train(
        name.partition(",")[0],
        run={"stop_env_steps": 2000, "stop_eval_return": "none"},
        evaluator={"enabled": False},
        quiet=True,
        **RUNS[name],
    )


def test_a_policy_knows_how_many_frames_it_sees(folder):  # noqa: F811
    seen = {name: short_run(name).load() for name in RUNS if name.endswith("stacked")}
    assert [(policy.stack, policy.observation_shape) for policy in seen.values()] == [(3, (3, 10, 5)), (4, (4, 3))]
    assert short_run("cartpole_dqn").load().stack == 1


@pytest.mark.parametrize("name", RUNS)
def test_modules_of_pytorch_choose_the_same_actions(folder, name, tmp_path):  # noqa: F811
    torch = pytest.importorskip("torch", reason="torch is not installed")
    policy = short_run(name).load()
    random = np.random.default_rng(1)
    observations = random.standard_normal((1000, *policy.observation_shape))
    if policy.observation_dtype == np.uint8:
        observations = random.integers(0, 256, observations.shape)
    observations = observations.astype(policy.observation_dtype)
    expected = policy(observations)

    def check(actions, tolerance=1e-5):
        if policy.actions is None:
            np.testing.assert_allclose(actions, expected, atol=tolerance)
        else:
            # Of two actions of the same value, rounding decides.
            assert (actions != expected).mean() <= 0.002

    check(policy.to_torch()(torch.from_numpy(observations)).numpy())
    policy.to_torchscript(tmp_path / "policy.pt")
    check(torch.jit.load(tmp_path / "policy.pt")(torch.from_numpy(observations)).numpy())
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    policy.to_onnx(tmp_path / "policy.onnx")
    session = runtime.InferenceSession(tmp_path / "policy.onnx")
    check(session.run(None, {"observations": observations})[0])


def test_one_observation_and_rows_of_them_give_the_same_actions(folder):  # noqa: F811
    for preset in ("cartpole_dqn", "pendulum_sac", "pendulum_ppo"):
        policy = short_run(preset).load("last")
        # So far from all that it has seen that the means of PPO lie outside of the bounds; SAC's come so near to them that nothing is drawn.
        scale = 50 if preset == "pendulum_ppo" else 1
        rows = scale * np.random.default_rng(1).standard_normal((5, *policy.observation_shape))
        chosen = policy(rows)
        assert chosen.shape == ((5,) if policy.actions else (5, len(policy.low)))
        np.testing.assert_allclose([policy(row) for row in rows], chosen, atol=1e-6)
        explored = [policy(rows, explore=True) for _ in range(200)]
        assert any((other != chosen).any() for other in explored)
        if policy.actions is None:
            assert all(((actions >= policy.low) & (actions <= policy.high)).all() for actions in [chosen, *explored])


def test_exploring_is_what_the_algorithm_did_when_the_policy_was_saved(folder):  # noqa: F811
    def explored(preset, **algorithm):
        policy = shoal.train(
            preset,
            run={"stop_env_steps": 2000, "stop_eval_return": "none"},
            evaluator={"enabled": False},
            algorithm=algorithm,
            quiet=True,
        ).load("last")
        rows = np.random.default_rng(1).standard_normal((2000, *policy.observation_shape))
        return policy, policy(rows), policy(rows, explore=True)

    _, best, drawn = explored("cartpole_dqn", epsilon_start=0.2, epsilon_end=0.2)
    # Half of what is drawn by chance is the best as well.
    assert 0.86 < (best == drawn).mean() < 0.94
    policy, best, drawn = explored("pendulum_td3", exploration_noise_std=0.05)
    inside = np.abs(best) < 0.7 * policy.high
    assert inside.sum() > 100
    assert 0.04 < ((drawn - best) / policy.high)[inside].std() < 0.06


def test_observations_that_do_not_fit_are_refused(folder):  # noqa: F811
    policy = short_run("cartpole_dqn").load()
    with pytest.raises(ValueError, match=r"\(4,\), with or without"):
        policy(np.zeros(5))
    with pytest.raises(ValueError, match="float32, not complex128"):
        policy(np.zeros(4, complex))
    with pytest.raises(ValueError, match="best"):
        shoal.load(policy.path, "newest")


def test_evaluations_agree_wherever_the_environment_is_stepped(folder):  # noqa: F811
    run = shoal.train("cartpole_dqn", quiet=True)
    policy = run.load()
    mine, gymnasiums = (
        shoal.evaluate(policy, episodes=20),
        shoal.evaluate(policy, gymnasium.make("CartPole-v1"), episodes=20),
    )
    assert len(mine.returns) == 20 and mine.return_mean > 400 and gymnasiums.return_mean > 400
    assert mine.ci95[0] <= mine.return_mean <= mine.ci95[1]
    with pytest.raises(shoal.PolicyError, match="Acrobot-v1"):
        shoal.evaluate(policy, "Acrobot-v1")


def test_a_file_that_was_replaced_meanwhile_makes_no_module(folder):  # noqa: F811
    torch = pytest.importorskip("torch", reason="torch is not installed")
    policy, newer = short_run("cartpole_dqn").load("last"), short_run("cartpole_ppo").load("last")
    assert policy.updates != newer.updates
    policy.path.write_bytes(newer.path.read_bytes())
    with pytest.raises(shoal.PolicyError, match=f"of {newer.updates} updates: load them again"):
        policy.to_torch()
    assert isinstance(newer.to_torch(), torch.nn.Module)


def test_a_damaged_file_is_refused_by_its_name(folder):  # noqa: F811
    (folder / "policy.safetensors").write_bytes(b"nothing")
    with pytest.raises(shoal.PolicyError, match=r"policy\.safetensors"):
        shoal.load("policy.safetensors")
    with pytest.raises(shoal.PolicyError, match="absent"):
        shoal.load("absent")
