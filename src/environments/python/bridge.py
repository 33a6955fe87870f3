"""One Gymnasium environment as an actor steps it: observations in a flat buffer of float32 or bytes, actions in one of float32.

The same functions run inside actors and, before a run starts, in a process of their own that only describes the environment.
"""

import contextlib
import difflib
import importlib
import importlib.util
import json
import numbers
import os
import re
import reprlib
import sys
import traceback
from importlib import metadata

# What is installed when nothing of Gymnasium is there; the set-up of a checkout pins the same version.
GYMNASIUM = "gymnasium[classic-control,box2d,mujoco]==1.4.0"
# For a newer Python, Box2D would have to be compiled.
if sys.version_info >= (3, 14):
    GYMNASIUM = GYMNASIUM.replace("box2d,", "")
ALE = "ale-py==0.12.1"
# Extras of Gymnasium, and packages, that bring a module of another name.
EXTRAS = {"Box2D": "box2d", "mujoco": "mujoco", "pygame": "classic-control", "cv2": "other", "moviepy": "other"}
PACKAGES = {"ale_py": ALE, "cv2": "opencv-python", "PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml"}
# Simulators whose version decides about results.
SIMULATORS = {"mujoco": "mujoco", "Box2D": "Box2D", "ale_py": "ale-py", "jax": "jax", "pybullet": "pybullet"}

# Calls of a traceback that are shown; those before them are Gymnasium's wrappers, or deep in a recursion.
INNERMOST_CALLS = 6
# Files whose calls come before the environment's: this one, who runs it, and what imports modules.
CALLING_FILES = ("<string>", "<shoal>", importlib.__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")


class Refused(Exception):
    """An environment that cannot be used here, in words that need no traceback, and what to do instead."""

    def __init__(self, reason, advice=""):
        super().__init__(reason)
        self.advice = advice


def make(id, keyword_arguments, search_folders, drawn=False):
    """The environment of that id, observed as one box."""
    kind, _, name = id.partition(":")
    keywords = json.loads(keyword_arguments)
    gymnasium = importlib.import_module("gymnasium")
    # The process that described the environment has shown what Gymnasium warns about.
    if "shoal_probe" not in sys.modules:
        gymnasium.logger.min_level = gymnasium.logger.ERROR
    if kind == "gymnasium":
        module_name, _, name = name.rpartition(":")
        if module_name:
            # Not left to Gymnasium, which knows no folders: who is imported registers the environment.
            imported(module_name, search_folders)
        if name.startswith("ALE/"):
            gymnasium.register_envs(importlib.import_module("ale_py"))
        keywords.setdefault("disable_env_checker", True)
        try:
            with without_warnings_of_models(gymnasium, name):
                environment = made(lambda **more: gymnasium.make(name, **more, **keywords), drawn and "render_mode" not in keywords)
        except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv) as error:
            near = difflib.get_close_matches(name, gymnasium.registry, n=4)
            advice = f"names like it: {', '.join(sorted(near, reverse=True))}" if near else ""
            if not near and not module_name:
                advice = f"if a module of yours registers it, write gymnasium:MODULE:{name}"
            raise Refused(str(error), advice) from None
    else:
        environment = made(lambda **more: load(name, search_folders)(**more, **keywords), drawn and "render_mode" not in keywords)
        wanted = ("observation_space", "action_space", "reset", "step")
        lacks = [attribute for attribute in wanted if not hasattr(environment, attribute)]
        if lacks:
            raise Refused(f"{name} makes a {type(environment).__name__}, which has no {' and no '.join(lacks)}")
    return as_one_box(gymnasium, environment)


def made(make, drawn):
    """What `make` makes, in the mode that gives pictures if it is to be `drawn` and has that mode."""
    environment = make()
    if "shoal_probe" in sys.modules:
        examined.append(environment)
    if not drawn or "rgb_array" not in ((getattr(environment, "metadata", None) or {}).get("render_modes") or []):
        return environment
    close(environment)
    try:
        return make(render_mode="rgb_array")
    except TypeError:
        # The environment says that it has the mode, and its constructor takes no such argument.
        return make()


def close(environment):
    """Closes the environment, if it can be closed, which gives back windows, files and memory; an exception concerns nobody any more."""
    with contextlib.suppress(Exception):
        getattr(environment, "close", lambda: None)()


@contextlib.contextmanager
def without_warnings_of_models(gymnasium, name):
    """Keeps MuJoCo from telling each of many processes, once per environment, what it finds outdated in Gymnasium's models."""
    entry_point = getattr(gymnasium.registry.get(name), "entry_point", None)
    if "shoal_probe" in sys.modules or "mujoco" not in str(entry_point) or importlib.util.find_spec("mujoco") is None:
        yield
        return
    mujoco = importlib.import_module("mujoco")
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def load(name, search_folders):
    """The class or function that `module:Class` or `path/to/file.py:Class` names."""
    module_name, _, attribute = name.rpartition(":")
    module = imported(module_name, search_folders)
    if not hasattr(module, attribute):
        near = difflib.get_close_matches(attribute, vars(module), n=1)
        raise Refused(f"{module_name} has no {attribute}", f"did you mean {near[0]}?" if near else "")
    return getattr(module, attribute)


def imported(module_name, search_folders):
    """The module of that name, or in the file `path/to/file.py`."""
    if module_name.endswith(".py"):
        paths = [os.path.join(folder, module_name) for folder in search_folders]
        path = next((path for path in paths if os.path.isfile(path)), None)
        if path is None:
            raise Refused(f"there is no file {module_name} in {' or '.join(search_folders)}")
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        # Last, since a file that was named needs no other folder, and what lies there may be called as what it imports.
        sys.path += [folder for folder in search_folders if folder not in sys.path]
        return load_file(os.path.abspath(path))
    sys.path[:0] = [folder for folder in search_folders if folder not in sys.path]
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A module that is missing inside of it is another matter.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise Refused(f"there is no module {error.name} in {', '.join(search_folders)} or among the packages of {sys.executable}") from None


def load_file(path):
    """The module in a file, which is run once however many environments are made of it."""
    name = os.path.splitext(os.path.basename(path))[0]
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == path:
        return loaded
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def as_one_box(gymnasium, environment):
    """Dictionaries, tuples and indices are flattened; a box of any shape is one already."""
    space = environment.observation_space
    if isinstance(space, gymnasium.spaces.Box):
        return environment
    if not space.is_np_flattenable:
        raise Refused(f"its observations are {space}, which has no fixed number of values")

    class Flattened(gymnasium.wrappers.FlattenObservation):
        """Says what it was given where that is no observation; flattening it would say something of its own."""

        def observation(self, observation):
            try:
                return super().observation(observation)
            except Exception:
                if observation in space:
                    raise
                raise TypeError(f"the observation {reprlib.repr(observation)} is not one of the observation space, {space}") from None

    return Flattened(environment)


def describe(environment):
    """Spaces, time limit and threshold. Bounds are words, because JSON has no infinity."""
    gymnasium, numpy = importlib.import_module("gymnasium"), importlib.import_module("numpy")

    def words(bounds):
        with numpy.errstate(over="ignore"):
            return [repr(float(bound)) for bound in numpy.asarray(bounds).astype(numpy.float32).ravel()]

    def within(bounds, inwards):
        """The nearest float32 that an environment which compares in float64 takes, too."""
        rounded = bounds.astype(numpy.float32)
        is_outside = (bounds - rounded) * inwards > 0
        return numpy.where(is_outside, numpy.nextafter(rounded, numpy.float32(inwards * numpy.inf)), rounded)

    def words_within(space):
        """Both bounds; where there is no float32 between them, the nearest to each."""
        with numpy.errstate(over="ignore"):
            low, high = within(space.low, 1), within(space.high, -1)
            is_empty = low > high
            return {"low": words(numpy.where(is_empty, space.low, low)), "high": words(numpy.where(is_empty, space.high, high))}

    space, action = environment.observation_space, environment.action_space
    if isinstance(action, gymnasium.spaces.Discrete):
        actions = {"discrete": int(action.n)}
    elif not isinstance(action, gymnasium.spaces.Box):
        raise Refused(f"its actions are {action}; Discrete and Box are supported")
    elif not numpy.issubdtype(action.dtype, numpy.floating):
        raise Refused(f"its actions are {action}, whole numbers; a Box of actions must be of real numbers")
    elif not action.is_bounded():
        raise Refused(f"its actions are {action}, which has no finite bounds that a policy could be scaled to")
    else:
        actions = {"box": words_within(action)}
    threshold = getattr(getattr(environment, "spec", None), "reward_threshold", None)
    order = axes(space.shape)
    observation = {
        "element": "u8" if is_bytes(numpy, space) else "f32",
        "shape": [int(space.shape[axis]) for axis in order],
        "low": words(space.low.transpose(order)),
        "high": words(space.high.transpose(order)),
    }
    return {
        "observation": observation,
        "action": actions,
        "time_limit_steps": time_limit(gymnasium, environment),
        "reward_threshold": float(threshold) if isinstance(threshold, numbers.Real) and numpy.isfinite(threshold) else None,
    }


def is_bytes(numpy, space):
    """Whether observations are bytes of any value: such as the pixels of an image."""
    return space.dtype == numpy.uint8 and bool((space.low == 0).all()) and bool((space.high == 255).all())


def axes(shape):
    """The order of the axes in which an observation is handed over: an image's channels come first, as convolutions want them."""
    last = len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4)
    return (2, 0, 1) if last else tuple(range(len(shape)))


def time_limit(gymnasium, environment):
    """Steps after which a wrapper truncates an episode; nothing where they are so many that they never come."""
    while isinstance(environment, gymnasium.Wrapper):
        if isinstance(environment, gymnasium.wrappers.TimeLimit):
            steps = int(environment._max_episode_steps)
            return steps if steps < 2**32 else None
        environment = environment.env
    return None


def software(environment):
    """Versions of what the environment's results depend on."""
    module = type(getattr(environment, "unwrapped", environment)).__module__.partition(".")[0]
    names = ["gymnasium", "numpy", *(package for name, package in SIMULATORS.items() if name in sys.modules)]
    if module not in names and module in sys.modules and module != "__main__":
        names += metadata.packages_distributions().get(module, [])[:1]
    versions = [("python", "%d.%d.%d" % sys.version_info[:3])]
    for name in dict.fromkeys(names):
        try:
            versions.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            pass
    return versions


# What an examination is doing, for the report of an exception.
during = "construction"
# The environments that were made for an examination.
examined = []


def examine(id, keyword_arguments, search_folders):
    """The description of an environment, which is made, reset and stepped once for this alone: what always fails shall fail here."""
    global during
    bridge = Bridge(id, keyword_arguments, search_folders)
    result = {"description": describe(bridge.environment), "software": software(bridge.environment)}
    during = "reset"
    # The largest of the seeds that actors give.
    bridge.reset(2**31 - 1)
    bridge.check_finite("observation", bridge.observation_values)
    during = "step"
    bridge.try_a_step()
    return result


class Bridge:
    """An environment with a buffer for its observation and one for its action."""

    def __init__(self, id, keyword_arguments, search_folders, drawn=False):
        self.environment = make(id, keyword_arguments, search_folders, drawn)
        numpy = importlib.import_module("numpy")
        description = describe(self.environment)
        self.description = json.dumps(description)
        self.numpy = numpy
        self.shape = tuple(self.environment.observation_space.shape)
        # What Rust reads, and the same memory in the environment's shape.
        element = numpy.uint8 if is_bytes(numpy, self.environment.observation_space) else numpy.float32
        self.observation_values = numpy.zeros(int(numpy.prod(self.shape)), dtype=element)
        # The type that a buffer of bytes takes without a check; a buffer of floats takes every number.
        self.dtype = self.observation_values.dtype if element is numpy.uint8 else None
        order = axes(self.shape)
        handed_over = self.observation_values.reshape([self.shape[axis] for axis in order])
        self.observation = handed_over.transpose(numpy.argsort(order))
        space = self.environment.action_space
        if hasattr(space, "n"):
            indices = [space.dtype.type(space.start + index) for index in range(int(space.n))]
            self.step_index = self.stepper(lambda index: indices[index])
        else:
            self.action_values = numpy.zeros(int(numpy.prod(space.shape)), dtype=numpy.float32)
            self.action_bounds = [numpy.array(description["action"]["box"][end], numpy.float32) for end in ("low", "high")]
            action, element = self.action_values.reshape(space.shape), space.dtype
            # A copy, because environments keep actions to compare them with the next.
            self.step_values = self.stepper(lambda: action.astype(element))

    def reset(self, seed):
        result = self.environment.reset(seed=seed)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError("reset() must return (observation, info)")
        self.observation[...] = self.checked(result[0])

    def stepper(self, action_of):
        """The function that steps, with all that it needs at hand: it runs once per step, and most environments are fast."""
        environment_step, view, checked = self.environment.step, self.observation, self.checked
        shape, dtype, ndarray = self.shape, self.dtype, self.numpy.ndarray

        def step(*index):
            result = environment_step(action_of(*index))
            try:
                observation, reward, terminated, truncated, _ = result
            except (TypeError, ValueError):
                returned = f"{len(result)} values" if hasattr(result, "__len__") else type(result).__name__
                raise TypeError(f"step() returned {returned}, not (observation, reward, terminated, truncated, info)") from None
            if type(observation) is not ndarray or observation.shape != shape or dtype is not None and observation.dtype is not dtype:
                observation = checked(observation)
            view[...] = observation
            return reward, terminated, truncated

        return step

    def try_a_step(self):
        """One step with the first action, or with the one nearest to 0, and a look at each part of the answer."""
        if hasattr(self, "step_index"):
            reward, terminated, truncated = self.step_index(0)
        else:
            # Within the bounds that `describe` tells, as every action of an actor is.
            self.action_values[...] = self.numpy.clip(0.0, *self.action_bounds)
            reward, terminated, truncated = self.step_values()
        self.check_finite("observation", self.observation_values)
        self.check_answer(reward, terminated, truncated)
        self.check_finite("reward", self.numpy.asarray(reward, dtype=float))

    def check_answer(self, reward, terminated, truncated):
        """Refuses what an actor cannot read of the answer of a step."""
        # Arrays are numbers if they have no dimension.
        if not isinstance(reward, numbers.Real) and not (isinstance(reward, self.numpy.ndarray) and reward.ndim == 0):
            raise TypeError(f"step() returned reward = {reward!r}, which is no number")
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if not isinstance(flag, (bool, self.numpy.bool_)):
                raise TypeError(f"step() returned {name} = {flag!r}, which is neither True nor False")

    def check_finite(self, name, values):
        """Refuses what no network can learn from."""
        for index in self.numpy.flatnonzero(~self.numpy.isfinite(values)):
            what = f"{name}[{index}]" if values.ndim else name
            raise Refused(f"it gave {what} = {values.flat[index]} in its first {during}: every observation and reward must be finite")

    def checked(self, observation):
        """The observation as an array of the right shape, since a smaller one would be spread over the buffer, and of values that it takes."""
        array = self.numpy.asarray(observation)
        if array.shape != self.shape:
            raise ValueError(f"the observation has the shape {array.shape}, and the observation space {self.shape}")
        if self.dtype is not None and array.dtype != self.dtype:
            with self.numpy.errstate(invalid="ignore"):
                as_bytes = array.astype(self.dtype)
            changed = array[as_bytes != array]
            if changed.size > 0:
                raise ValueError(f"the observation has the value {changed[0]}, and the observation space whole numbers from 0 to 255 (uint8)")
        return array

    def draws(self):
        """Whether it renders pictures, once it has been reset."""
        return getattr(self.environment, "render_mode", None) == "rgb_array"

    def picture(self):
        """Width, height and the bytes of its rows from the top; nothing from an environment that says of itself that it renders none."""
        if not self.draws():
            return None
        pixels = self.environment.render()
        is_array = isinstance(pixels, self.numpy.ndarray)
        if not is_array or pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != self.numpy.uint8 or pixels.size == 0:
            returned = f"{pixels.dtype} of the shape {pixels.shape}" if is_array else reprlib.repr(pixels)
            raise TypeError(f"render() returned {returned}, not a picture: bytes (uint8) of the shape (height, width, 3)")
        return pixels.shape[1], pixels.shape[0], pixels.tobytes()

    def close(self):
        close(self.environment)


def report(error):
    """What is said of an exception, as JSON: its kind, its line, and the end of its traceback from the environment's first call on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename in CALLING_FILES:
        frames = frames.tb_next
    lines = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
    # Its line stands before its words, and imports are all that calls the file.
    is_syntax = isinstance(error, SyntaxError)
    calls = traceback.format_exception(type(error), error, frames, limit=-INNERMOST_CALLS)
    answer = {
        "kind": "raised",
        "summary": f"{type(error).__name__}: {error.msg}" if is_syntax else lines[0] if lines else type(error).__name__,
        "advice": "",
        "traceback": "".join(calls).rstrip() if frames or is_syntax else "",
    }
    errors = getattr(sys.modules.get("gymnasium"), "error", None)
    if isinstance(error, Refused):
        answer.update(kind="refused", summary=str(error), advice=error.advice)
    elif errors is not None and isinstance(error, errors.DependencyNotInstalled):
        answer.update(kind="missing", advice=install_command(package_in(str(error))))
    elif isinstance(error, ModuleNotFoundError) and error.name:
        module = error.name.partition(".")[0]
        if is_missing(module):
            kind = "missing" if module in (*EXTRAS, *PACKAGES, "gymnasium") else "unknown"
            answer.update(kind=kind, advice=install_command(package_of(module)))
    return json.dumps(answer)


def is_missing(module):
    """Whether there is no module of that name, which has no dot: of one that is there, only a submodule may be missing."""
    return module not in sys.modules and importlib.util.find_spec(module) is None


def package_in(message):
    """The package that a message of Gymnasium asks for."""
    extra = re.search(r"gymnasium\[[\"']?([\w,-]+)", message)
    if extra:
        return gymnasium_with(extra.group(1))
    package = re.search(r"pip install [\"'`]?([\w.\[\]=<>-]+)", message)
    return package.group(1) if package else GYMNASIUM


def package_of(module):
    """The package that brings a module."""
    if module == "gymnasium":
        return GYMNASIUM
    return gymnasium_with(EXTRAS[module]) if module in EXTRAS else PACKAGES.get(module, module)


def gymnasium_with(extra):
    """An extra of the Gymnasium that is installed."""
    try:
        return f"gymnasium[{extra}]=={metadata.version('gymnasium')}"
    except metadata.PackageNotFoundError:
        return GYMNASIUM


def install_command(package):
    """The command that installs a package where this interpreter finds it."""
    return f'{sys.executable} -m pip install "{package}"'
