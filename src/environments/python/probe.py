"""Describes an environment in a process of its own, so that the supervisor need not run Python to plan a run."""

import faulthandler
import json
import os
import sys
import threading
import types

# After so long people want to know what they are waiting for.
SILENCE_S = 2

# What the environment prints must not mix with the answer.
answer = os.dup(1)
os.dup2(2, 1)
# As bytes: they are UTF-8, whatever the encoding of the user is.
request = json.load(sys.stdin.buffer)
# The current folder, which only `python -c` searches.
sys.path[:] = [folder for folder in sys.path if folder]
# A plugin of Gymnasium's that hangs while it is imported must not hold up whoever asks, either.
faulthandler.dump_traceback_later(request["patience_s"], exit=True, file=answer)
try:
    # A busy disk is not the environment's fault. What goes wrong here is reported below, where it is needed.
    import gymnasium  # noqa: F401
except BaseException:
    pass
faulthandler.dump_traceback_later(request["patience_s"], exit=True, file=answer)
bridge = types.ModuleType("shoal_bridge")
bridge.__file__ = "<shoal>"
sys.modules["shoal_probe"] = sys.modules["shoal_bridge"] = bridge


def tell_what_takes_long():
    """Past Python's buffers: what the environment forks must not find their lock taken."""
    moment = {"reset": "first reset", "step": "first step"}.get(bridge.during, bridge.during)
    until = f"after {request['patience_s']:g} s it is given up"
    os.write(2, f"trying the environment {request['id']} has taken {SILENCE_S} s, and its {moment} is not over; {until}\n".encode())


teller = threading.Timer(SILENCE_S, tell_what_takes_long)
teller.daemon = True
try:
    exec(compile(request["bridge"], "<shoal>", "exec"), vars(bridge))
    teller.start()
    examiner = bridge
    if request["source"] is not None:
        examiner = types.ModuleType("shoal_examiner")
        exec(compile(request["source"], "<shoal>", "exec"), vars(examiner))
    result = examiner.examine(*request["arguments"])
except BaseException as error:
    result = {"fault": json.loads(bridge.report(error)), "during": bridge.during}
teller.cancel()
with os.fdopen(answer, "w") as file:
    json.dump(result, file)
# The answer is given: an environment that closes slowly changes nothing of it, but for the time until this process gives up.
for environment in vars(bridge).get("examined", []):
    bridge.close(environment)
sys.stderr.flush()
# What the environment left behind must not hold this process, nor outlive it.
for child in getattr(sys.modules.get("multiprocessing"), "active_children", list)():
    child.kill()
os._exit(0)
