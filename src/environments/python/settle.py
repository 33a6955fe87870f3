"""Makes the embedded interpreter act as the one that the run chose, with its packages, its name and its prefix."""

import faulthandler
import os
import signal
import site
import sys
import sysconfig


def settle(executable, prefix, package_folders, stack_descriptor):
    """Runs once, before any import from outside the standard library."""
    # These variables are for this interpreter alone: programs that an environment starts must not inherit them.
    for name in ("PYTHONHOME", "SHOAL_PYTHON"):
        os.environ.pop(name, None)
    sys.executable = executable
    sys.prefix = sys.exec_prefix = prefix
    sys.path[:] = [folder for folder in sys.path if is_of_the_interpreter(folder)]
    for folder in package_folders:
        site.addsitedir(folder)
    if stack_descriptor < 0:
        faulthandler.enable()
    else:
        # Signal handlers write the stack to the descriptor, so that hangs and crashes in native code are reported as well.
        faulthandler.enable(file=stack_descriptor, all_threads=False)
        faulthandler.register(signal.SIGUSR1, file=stack_descriptor, all_threads=False, chain=False)


def is_of_the_interpreter(folder):
    """Whether a folder holds the standard library or is named by PYTHONPATH. Other folders hold packages of another Python."""
    standard = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    archive = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    # In the form in which `site` writes them into `sys.path`: absolute, and without a slash at the end.
    named = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return folder in standard or folder in named or os.path.basename(folder) in ("lib-dynload", archive)
