"""The virtual environment that the libraries to compare with are installed in. Standard library only."""

import subprocess
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent


def python():
    """Its interpreter; the first call makes it and installs requirements.txt into it."""
    folder = HERE / ".venv"
    marker, wanted = folder / "installed.txt", (HERE / "requirements.txt").read_text()
    if not marker.exists() or marker.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([folder / "bin/pip", "install", "-q", "-r", HERE / "requirements.txt"], check=True)
        marker.write_text(wanted)
    return folder / "bin/python"
