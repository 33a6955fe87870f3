"""Describes an environment in a process of its own, so that the supervisor need not run Python to plan a run."""

import faulthandler
import json
import os
import sys
import threading
import types

# After this time people want to know what they are waiting for.
SILENCE_S = 2
# Smaller images are as well off among other numbers.
LEAST_IMAGE_VALUES = 256


def remark_on_images(space):
    """Names an image in this dictionary or tuple of observations, which are flattened, if there is one."""
    parts = [("observation", space)]
    # The list grows by what each of them holds.
    for name, part in parts:
        held = getattr(part, "spaces", ())
        parts += [(f"{name}[{key!r}]", inner) for key, inner in (held.items() if isinstance(held, dict) else enumerate(held))]
        if part is not space and hasattr(part, "low") and len(part.shape) == 3 and part.low.size >= LEAST_IMAGE_VALUES:
            told = f"{name} is an image of {'x'.join(map(str, part.shape))} numbers, and is flattened to a row with what lies beside it"
            return f"{told}: learning from pixels this way rarely works; an image that is the whole observation keeps its shape"
    return None


# The environment's output goes to the standard error, so that it does not mix with the answer.
answer = os.dup(1)
os.dup2(2, 1)
# Read as bytes, which are UTF-8 whatever the user's encoding is.
request = json.load(sys.stdin.buffer)
# Removes the current folder, which only `python -c` searches.
sys.path[:] = [folder for folder in sys.path if folder]
# Set before the import: a plugin of Gymnasium may hang while it is imported.
faulthandler.dump_traceback_later(request["patience_s"], exit=True, file=answer)
try:
    # Imported before the environment's time begins, because a slow disk is not its fault. If the import fails, it fails again
    # below, where it is needed and reported.
    import gymnasium  # noqa: F401
except BaseException:
    pass
faulthandler.dump_traceback_later(request["patience_s"], exit=True, file=answer)
faults, bridge = types.ModuleType("shoal_faults"), types.ModuleType("shoal_bridge")
faults.__file__ = bridge.__file__ = "<shoal>"
sys.modules["shoal_faults"] = faults
sys.modules["shoal_probe"] = sys.modules["shoal_bridge"] = bridge


def tell_what_takes_long(doing):
    """Writes past Python's buffers: a process that the environment forks must not find their lock taken."""
    moment = {"reset": "first reset", "step": "first step"}.get(bridge.during, bridge.during)
    until = f"after {request['patience_s']:g} s it is given up"
    os.write(2, f"{doing} the environment {request['id']} has taken {SILENCE_S} s, and its {moment} is not over; {until}\n".encode())


def teller_of(doing):
    """A timer that tells what takes long, once it is started."""
    teller = threading.Timer(SILENCE_S, tell_what_takes_long, [doing])
    teller.daemon = True
    return teller


teller = teller_of("trying")
try:
    exec(compile(request["faults"], "<shoal>", "exec"), vars(faults))
    exec(compile(request["bridge"], "<shoal>", "exec"), vars(bridge))
    teller.start()
    examiner = bridge
    if request["source"] is not None:
        examiner = types.ModuleType("shoal_examiner")
        exec(compile(request["source"], "<shoal>", "exec"), vars(examiner))
    result = examiner.examine(*request["arguments"])
    for environment in bridge.examined:
        result["remark"] = result["remark"] or remark_on_images(environment.observation_space)
except BaseException as error:
    result = {"fault": json.loads(bridge.report(error)), "during": bridge.during}
teller.cancel()
# An environment that closes slowly does not change the answer. The watchdog limits the time for that anew, and writes elsewhere:
# the answer's descriptor is closed, and its number may be that of a file which close() opens.
faulthandler.dump_traceback_later(request["patience_s"], exit=True, file=2)
with os.fdopen(answer, "w") as file:
    json.dump(result, file)
bridge.during = "close()"
teller = teller_of("closing")
teller.start()
for environment in vars(bridge).get("examined", []):
    bridge.close(environment)
teller.cancel()
sys.stderr.flush()
bridge.end_helpers()
os._exit(0)
