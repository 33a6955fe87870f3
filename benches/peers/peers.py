"""The virtual environments that the libraries to compare with are installed in. Standard library only."""

import os
import subprocess
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent


def python(folder=".venv", requirements="requirements.txt", compiled=()):
    """The interpreter of one; the first call makes it and installs the requirements into it.

    `compiled` are packages that are compiled against what the requirements installed.
    """
    folder = HERE / folder
    marker, wanted = folder / "installed.txt", (HERE / requirements).read_text() + "\n".join(compiled)
    if not marker.exists() or marker.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        install = [folder / "bin/pip", "install", "-q"]
        subprocess.run([*install, "-r", HERE / requirements], check=True)
        if compiled:
            # Of PufferLib, its trainer without its own environments, which need libraries that its package lacks. Without them its setup.py
            # lacks a name, which it then finds here.
            with tempfile.TemporaryDirectory() as names:
                (Path(names) / "sitecustomize.py").write_text("import builtins\n\nbuiltins.c_extension_paths = []\n")
                environment = {**os.environ, "NO_OCEAN": "1", "PYTHONPATH": names}
                subprocess.run([*install, "--no-build-isolation", *compiled], check=True, env=environment)
        marker.write_text(wanted)
    return folder / "bin/python"
