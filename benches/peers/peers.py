"""The virtual environments that the libraries to compare with are installed in, and what runs in them. Standard library only."""

import json
import os
import subprocess
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent


def python(folder=".venv", requirements="requirements.txt", compiled=()):
    """The interpreter of a virtual environment. The first call makes it and installs the requirements into it.

    `compiled` are packages that are compiled against the installed requirements.
    """
    folder = HERE / folder
    marker = folder / "installed.txt"
    wanted = (HERE / requirements).read_text() + "\n".join(compiled)
    if not marker.exists() or marker.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        install = [folder / "bin/pip", "install", "-q"]
        subprocess.run([*install, "-r", HERE / requirements], check=True)
        if compiled:
            # PufferLib is installed without its own environments (NO_OCEAN), which need libraries that its package lacks.
            # Its setup.py then uses a name that it does not define, so a sitecustomize.py defines the name.
            with tempfile.TemporaryDirectory() as customization:
                (Path(customization) / "sitecustomize.py").write_text("import builtins\n\nbuiltins.c_extension_paths = []\n")
                environment = {**os.environ, "NO_OCEAN": "1", "PYTHONPATH": customization}
                subprocess.run([*install, "--no-build-isolation", *compiled], check=True, env=environment)
        marker.write_text(wanted)
    return folder / "bin/python"


def answer(*command, env=None):
    """The last line that a command prints, read as JSON. If the command fails, the error says what it wrote."""
    words = [str(word) for word in command]
    found = subprocess.run(words, capture_output=True, text=True, env=env)
    if found.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} failed:\n{found.stderr[-2000:]}")
    return json.loads(found.stdout.splitlines()[-1])
