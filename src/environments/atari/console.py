"""A console of the Arcade Learning Environment with one of the games that the package ale-py ships."""

import difflib
import importlib
import os
import sys
from importlib import metadata

import shoal_bridge


def import_ale():
    """Imports ale_py as if there were no Gymnasium. Then it does not import Gymnasium, which saves every actor that import."""
    if "gymnasium" in sys.modules:
        return importlib.import_module("ale_py")
    sys.modules["gymnasium"] = None
    try:
        return importlib.import_module("ale_py")
    finally:
        del sys.modules["gymnasium"]


def find(ale_py, name):
    """The file of a game, by the name that Gymnasium gives it or that of its file: `SpaceInvaders`, `space_invaders`."""
    roms = importlib.import_module("ale_py.roms")
    files = {file.title().replace("_", ""): file for file in roms.get_all_rom_ids()}
    file = name if name in files.values() else files.get(name)
    if file is None:
        spelt = {game.lower(): game for game in files}
        near = [spelt[game] for game in difflib.get_close_matches(name.lower().replace("_", ""), spelt, n=4)]
        advice = f"names like it: {', '.join(near)}" if near else f"it has {', '.join(sorted(files))}"
        raise shoal_bridge.Refused(f"ale-py {ale_py.__version__} ships no game {name}", advice)
    try:
        path = str(roms.get_rom_path(file))
    except OSError as error:
        # ale-py looks in that folder, if it is set, and not among its own files.
        if folder := os.environ.get("ALE_ROMS_DIR"):
            remedy = f"unset ALE_ROMS_DIR, which is {folder}, or put the file of ale-py {ale_py.__version__} there"
        else:
            package = shoal_bridge.package_of("ale_py")
            remedy = f"install it again:  {shoal_bridge.install_command(package)} --force-reinstall"
        # The rest of what is said of another file are two hashes.
        reason = str(error).partition("\n")[0]
        raise shoal_bridge.Refused(f"its file {file}.bin is of no use ({reason}); {remedy}") from None
    # Loading a game that ALE cannot play alone would end the process.
    if ale_py.ALEInterface.isSupportedROM(path) is None:
        raise shoal_bridge.Refused(f"ALE {ale_py.__version__} cannot play {name} alone: it is for two")
    return path


class Console:
    """An emulator with a game loaded, and what Rust passes to it: the actions, and a buffer for the screen."""

    def __init__(self, game, repeat_action_probability, max_num_frames_per_episode):
        ale_py, numpy = import_ale(), importlib.import_module("numpy")
        # Otherwise ALE writes to the terminal: its name, and what it finds in each game.
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.path = find(ale_py, game)
        self.ale = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", repeat_action_probability)
        self.ale.setInt("max_num_frames_per_episode", max_num_frames_per_episode)
        self.ale.loadROM(self.path)
        self.actions = list(self.ale.getMinimalActionSet())
        self.nothing, self.fire = ale_py.Action.NOOP, ale_py.Action.FIRE
        self.has_fire = self.fire in self.actions
        self.screen = numpy.zeros(self.ale.getScreenDims(), dtype=numpy.uint8)

    def load(self, seed):
        """Loads the game again, because ALE heeds a seed only then."""
        self.ale.setInt("random_seed", seed)
        self.ale.loadROM(self.path)


def examine(game, repeat_action_probability, max_num_frames_per_episode):
    """What is known of a game before it is played. The game is started and stepped once: what always fails must fail here."""
    console = Console(game, repeat_action_probability, max_num_frames_per_episode)
    shoal_bridge.during = "reset"
    console.load(0)
    console.ale.reset_game()
    shoal_bridge.during = "step"
    console.ale.act(console.actions[0])
    console.ale.getScreenGrayscale(console.screen)
    versions = [("python", "%d.%d.%d" % sys.version_info[:3])]
    versions += [(name, metadata.version(name)) for name in ("numpy", "ale-py")]
    return {"actions": len(console.actions), "software": versions}
