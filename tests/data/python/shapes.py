"""Environments with spaces of many kinds, and with observations, rewards and actions of many kinds."""

import sys
import types

import gymnasium
import numpy
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple


class Shown(gymnasium.Env):
    """Always observes `observation`, and takes actions of `action_space`."""

    observation_space = Box(-10.0, 10.0, (2,), numpy.float32)
    observation = numpy.zeros(2, numpy.float32)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation, {}

    def step(self, action):
        return self.observation, 0.0, False, False, {}


class Nested(Shown):
    """Names its parts in another order than that in which they are flattened."""

    observation_space = Dict({"b": Tuple((Discrete(3), Box(0.0, 9.0, (1,), numpy.float32))), "a": Box(-1.0, 1.0, (2, 1), numpy.float64)})
    observation = {"b": (2, numpy.array([7.0], numpy.float32)), "a": numpy.array([[0.25], [0.5]])}


class Observing(Shown):
    """Observes `observation`, which need not be in `space`."""

    def __init__(self, space, observation):
        self.observation_space, self.observation = eval(space, globals()), eval(observation, globals())


class ArrayForADict(Nested):
    observation = numpy.zeros(4, numpy.float32)


class Words(gymnasium.Space):
    """A space of one's own, with no more than an environment needs of it."""

    def sample(self, mask=None, probability=None):
        return "go on"

    def contains(self, x):
        return isinstance(x, str)

    def __repr__(self):
        return "Words()"


class Told(Shown):
    """Observes words beside a number."""

    observation_space = Dict({"speed": Box(-1.0, 1.0, (1,), numpy.float32), "mission": Words()})
    observation = {"speed": numpy.zeros(1, numpy.float32), "mission": "go on"}


class Image(Shown):
    observation_space = Box(0, 255, (2, 3, 1), numpy.uint8)
    observation = numpy.arange(6, dtype=numpy.uint8).reshape(2, 3, 1) + 250 - 2


class Colours(Shown):
    observation_space = Box(0, 255, (5, 4, 3), numpy.uint8)
    observation = numpy.arange(60, dtype=numpy.uint8).reshape(5, 4, 3)


class Seeing(Shown):
    """Observes a square image of bytes, among other things."""

    def __init__(self, side):
        image = Box(0, 255, (side, side, 1), numpy.uint8)
        self.observation_space = Dict({"speed": Box(-1.0, 1.0, (1,), numpy.float32), "cameras": Tuple((image,))})
        self.observation = {"speed": numpy.zeros(1, numpy.float32), "cameras": (numpy.zeros(image.shape, numpy.uint8),)}


class Shaped(Shown):
    """Observes numbers of any `shape`."""

    def __init__(self, shape):
        self.observation_space = Box(-1.0, 1.0, tuple(shape), numpy.float32)


class Washed(Image):
    """Shows `colour`, with the type that it has, in all pixels from the second observation on."""

    def __init__(self, colour):
        self.colour = eval(colour, {"numpy": numpy, "nan": float("nan")})

    def step(self, action):
        return numpy.full((2, 3, 1), self.colour), 0.0, False, False, {}


class Drawn(Shown):
    """Renders `picture`."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, picture, render_mode=None):
        self.picture = eval(picture, {"numpy": numpy})
        self.render_mode = render_mode

    def render(self):
        return self.picture


def make_drawn():
    """Hands on nothing to the environment."""
    return Drawn("numpy.zeros((4, 6, 3), numpy.uint8)")


class Claiming(Shown):
    """Says that it can be drawn, and its constructor takes nothing."""

    metadata = {"render_modes": ["rgb_array"]}


class LacksAFont(Shown):
    """Cannot be made where it is to be drawn."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None):
        if render_mode is not None:
            raise TypeError("no font of that size")


class Bits(Shown):
    observation_space = Box(0, 1, (2, 2), numpy.uint8)
    observation = numpy.ones((2, 2), numpy.uint8)


class LaterIndices(Shown):
    """The reward is the action."""

    action_space = Discrete(3, start=-1)

    def step(self, action):
        return self.observation, float(action), False, False, {}


class ManyIndices(LaterIndices):
    action_space = Discrete(10**9)


class Rewarded(Shown):
    """Every episode is one step, for which there is the `reward`, or nothing in the first `free` steps. Observes so many numbers."""

    def __init__(self, reward, numbers=2, free=0):
        self.reward, self.free = reward, free
        self.observation_space = Box(-1.0, 1.0, (numbers,), numpy.float32)
        self.observation = numpy.zeros(numbers, numpy.float32)

    def step(self, action):
        self.free -= 1
        return self.observation, float(self.reward) if self.free < 0 else 0.0, True, False, {}


class KeepsActions(Shown):
    """The reward is the difference from the action before, which is kept without a copy."""

    action_space = Box(-2.0, 2.0, (1, 2), numpy.float64)
    kept = None

    def step(self, action):
        assert action.shape == (1, 2) and action.dtype == numpy.float64, action
        assert self.action_space.contains(action), action
        before, self.kept = self.kept, action
        return self.observation, 0.0 if before is None else float((action - before).sum()), False, False, {}


class Combined(Shown):
    """Takes arrays of `space`. The reward has the numbers of the action as its digits. The array is written to, as one's own may be."""

    def __init__(self, space):
        self.action_space = eval(space, {"MultiBinary": MultiBinary, "MultiDiscrete": MultiDiscrete, "numpy": numpy})

    def step(self, action):
        assert action.dtype == self.action_space.dtype and self.action_space.contains(action), action
        reward = numpy.polyval(action.ravel().astype(float), 10.0)
        action[...] = 0
        return self.observation, float(reward), False, False, {}


class Lock(Shown):
    """Every episode is one step, with a reward for one combination of two wheels."""

    action_space = MultiDiscrete([2, 3], start=[0, -1])

    def step(self, action):
        assert self.action_space.contains(action), action
        return self.observation, float(action.tolist() == [1, 0]), True, False, {}


class ManySwitches(Shown):
    action_space = MultiBinary(13)


class NestedActions(Shown):
    action_space = Dict({"wheel": MultiDiscrete([2, 3])})


def make_cart_pole_with_a_switch():
    return gymnasium.wrappers.TransformAction(gymnasium.make("CartPole-v1"), lambda action: int(action[0]), MultiBinary(1))


class OldSpaces(Shown):
    """Has spaces of another package than Gymnasium, as those of gym are."""

    def __init__(self, name):
        setattr(self, name, types.SimpleNamespace(n=2))


class EndlessActions(Shown):
    action_space = Box(-numpy.inf, numpy.inf, (1,), numpy.float32)


class AnswersInNumpy(Shown):
    def step(self, action):
        return [1, 2], numpy.float32(0.5), numpy.bool_(False), numpy.bool_(True), {}


class AnswersInBools(Shown):
    """The reward is a comparison of NumPy's, and a reset returns a list."""

    def reset(self, **given):
        return list(super().reset(**given))

    def step(self, action):
        return self.observation, self.observation.sum() < 0.1, False, False, {}


class AnswersInATypeOfItsOwn(Shown):
    """The reward is no number of Python's or NumPy's, and can be made one."""

    class Distance:
        def __float__(self):
            return 0.25

    def step(self, action):
        return self.observation, self.Distance(), False, False, {}


class AnswersNothing(Shown):
    def step(self, action):
        return self.observation, None, False, False, {}


class EndsWithANumber(Shown):
    def step(self, action):
        return self.observation, 0.0, 1, False, {}


class OldReset(Shown):
    """`reset` returns the observation alone, in a list."""

    def reset(self, **given):
        return [0.1, 0.2]


class OldStep(Shown):
    def step(self, action):
        return self.observation, 0.0, False, {}


class RewardsInAList(Shown):
    def step(self, action):
        return self.observation, numpy.array([1.0]), False, False, {}


def make_endless():
    """An environment whose time limit and reward threshold mean that there is none."""
    environment = gymnasium.wrappers.TimeLimit(Shown(), sys.maxsize)
    environment.unwrapped.spec = gymnasium.envs.registration.EnvSpec("Shown-v0", reward_threshold=float("inf"))
    return environment


class NeedsAPackage(Shown):
    def __init__(self):
        import no_such_package_anywhere.inside  # noqa: F401


class NeedsANewerPackage(Shown):
    def __init__(self):
        import numpy.no_such_module_of_it  # noqa: F401


class Configured(Shown):
    def __init__(self, length, names=()):
        self.observation_space = Box(-1.0, 1.0, (length + len(names),), numpy.float32)


def make_limited(steps):
    return gymnasium.wrappers.TimeLimit(Shown(), steps)


def make_scaled(wrappers, learns=True):
    environment = Shown()
    for name in wrappers:
        environment = getattr(gymnasium.wrappers, name)(environment)
        environment.update_running_mean = learns
    return gymnasium.wrappers.TimeLimit(environment, 100)


no_environment = dict


class Literal:
    """Not a subclass of `gymnasium.Env`, and without `close`. Checks its 64-bit bounds exactly, and seeds NumPy's old generator."""

    observation_space = Box(-1.0, 1.0, (2,), numpy.float32)
    action_space = Box(numpy.array([-0.1, -0.7]), numpy.array([0.1, 0.3]), dtype=numpy.float64)

    def reset(self, *, seed=None, options=None):
        numpy.random.seed(seed)
        return numpy.zeros(2, numpy.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space!r}"
        return numpy.zeros(2, numpy.float32), float(action.sum()), False, False, {}


class LiteralIndices(Literal):
    """Has a space that needs a wrapper of Gymnasium."""

    observation_space = Discrete(4)


class Positive(Literal):
    """Neither 0 nor the lower bound, once that is rounded to 32 bits, is in its action space."""

    action_space = Box(numpy.array([0.7, 0.7]), numpy.array([2.0, 2.0]), dtype=numpy.float64)


class Narrow(Literal):
    """One of its actions can only be a number that 32 bits cannot hold, and one is as large as they cannot hold."""

    action_space = Box(numpy.array([-1.0, 0.1, 0.0]), numpy.array([1.0, 0.1, 1e300]), dtype=numpy.float64)
