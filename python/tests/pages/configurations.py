"""Completes configurations that pages show in parts."""

import re
import shutil
import tomllib

from pages.blocks import ROOT
from shoal._configuration import _assignments

#: The preset that the parts on a page change; `None` for a page that shows whole files.
BASES = {
    "docs/atari.md": "pong_dqn",
    "docs/coming-from-sb3.md": None,
    "docs/configuration.md": None,
    "docs/environments.md": "corridor_dqn",
    "docs/networks.md": "rally_dqn",
}
#: Replaces an environment that is not installed. Its images have as many rows and columns.
IMAGES = {"id": "Rally-v0"}
ALTERNATIVE = re.compile(r"^# (\w+) = ", re.MULTILINE)


def variants(text):
    """A part as it is, and, for each line that is commented out, the part with that line instead."""
    yield text
    for alternative in ALTERNATIVE.finditer(text):
        without = re.sub(rf"^{alternative[1]} = .*\n", "", text, flags=re.MULTILINE)
        line = text[alternative.start() :].partition("\n")[0]
        yield without.replace(line, line.removeprefix("# "))


def whole(base, part):
    """The tables of the preset `base`, if any, with those of `part` laid over them."""
    tables = tomllib.loads((ROOT / f"configs/{base}.toml").read_text()) if base else {}
    for name, table in tomllib.loads(part).items():
        tables[name] = {**tables.get(name, {}), **table}
    return tables


def write(path, tables):
    lines = [line for name, table in tables.items() for line in (f"[{name}]", *_assignments(table))]
    path.write_text("\n".join(lines) + "\n")


def provide_environments(folder):
    """Create what the alternatives of docs/environments.md name, in the folder of a configuration."""
    module = folder / "corridor.py"
    for name in ("tasks", "lib"):
        (folder / name).mkdir()
    shutil.copy(module, folder / "tasks")
    module.write_text(module.read_text() + "\n\ndef make(**arguments):\n    return Corridor(**arguments)\n")
