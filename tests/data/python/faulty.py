"""An environment that does what it is told to, such as failing."""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import gymnasium
import numpy


class Faulty(gymnasium.Env):
    """Behaves well for `after` steps, then does what `how` says, or does it only once if `once` names a file to mark that."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, how, after=100, once=None, code=7, render_mode=None):
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), numpy.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.how, self.after, self.once, self.code, self.render_mode = how, after, once, code, render_mode
        self.steps = 0
        if how == "wander":
            os.chdir("/")
        if how == "hang in its constructor":
            self.hang()
        if how == "leave a helper behind":
            helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
            helper.start()
            raise ValueError(f"its helper is process {helper.pid}.")
        if how == "keep helpers" and "shoal_probe" not in sys.modules:
            self.keep_helpers()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.how == "talk":
            print("a new episode", flush=True)
        if self.how == "reset slowly":
            time.sleep(0.75)
        return self.observe(), {}

    def step(self, action):
        self.steps += 1
        observation, reward = self.observe(), 1.0
        if self.steps > self.after and self.is_first_time():
            if self.how == "raise":
                self.raise_an_error()
            elif self.how == "exit":
                sys.exit("no longer")
            elif self.how == "exit at once":
                os._exit(self.code)
            elif self.how == "exit well at once":
                os._exit(0)
            elif self.how == "crash":
                os.abort()
            elif self.how == "hang":
                self.hang()
            elif self.how == "hang in native code":
                # PyDLL keeps the interpreter's lock during the call.
                ctypes.PyDLL(None).sleep(600)
            elif self.how == "observe nan":
                observation[1] = numpy.nan
            elif self.how == "reward infinity":
                reward = numpy.inf
            elif self.how == "reward beyond floats":
                reward = 1e39
            elif self.how == "observe beyond":
                observation[1] = 5.0
            elif self.how == "observe less":
                observation = observation[:2]
        return observation, reward, False, self.steps % 20 == 0 and self.how != "never end", {}

    def render(self):
        return numpy.full((16, 16, 3), self.steps % 256, numpy.uint8)

    def close(self):
        if self.how == "close slowly":
            time.sleep(1)
        if self.how == "crash in close" and self.steps > self.after:
            os.abort()

    def keep_helpers(self):
        """Ends helpers by signals, and leaves others behind. The ids of all are in the file `once`."""
        with open(self.once, "a") as file:
            helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True)
            helper.start()
            programs = [(subprocess.Popen(["sleep", "600"]), number) for number in (signal.SIGTERM, signal.SIGINT)]
            print(helper.pid, *(program.pid for program, _ in programs), file=file, flush=True)
            # As a terminal's Ctrl+C, which is the supervisor's.
            os.kill(helper.pid, signal.SIGINT)
            helper.join(0.2)
            assert helper.is_alive()
            helper.terminate()
            helper.join(30)
            assert helper.exitcode == -signal.SIGTERM, helper.exitcode
            for program, number in programs:
                program.send_signal(number)
                assert program.wait(30) == -number, number
            for method in ("fork", "spawn"):
                left = multiprocessing.get_context(method).Process(target=time.sleep, args=(600,), daemon=True)
                left.start()
                print(left.pid, file=file, flush=True)

    def observe(self):
        return self.np_random.uniform(-1.0, 1.0, 3).astype(numpy.float32)

    def is_first_time(self):
        if self.once is None:
            return True
        try:
            os.close(os.open(self.once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def raise_an_error(self):
        raise ValueError("the wheels came off")

    def hang(self):
        while True:
            pass


class Endless(gymnasium.Wrapper):
    """Continues when the time limit inside it ends an episode."""

    def __init__(self, how):
        super().__init__(gymnasium.wrappers.TimeLimit(Faulty(how), 20))

    def step(self, action):
        observation, reward, _, truncated, info = self.env.step(action)
        if truncated:
            observation, info = self.env.reset()
        return observation, reward, False, False, info


class OldApi(Faulty):
    """The interface of Gym before 0.26: `reset` returns the observation alone."""

    def __init__(self):
        super().__init__("behave")

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]
