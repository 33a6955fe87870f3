"""Makes the embedded interpreter the one that the run chose: its packages, its name, its prefix."""

import faulthandler
import os
import signal
import site
import sys
import sysconfig


def settle(executable, prefix, package_folders, stack_descriptor):
    """Runs once, before anything is imported that is not of the standard library."""
    # These variables were for this interpreter; programs that an environment starts must find their own.
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
        # Signal handlers write there, so that native code that hangs or crashes is told of, too.
        faulthandler.enable(file=stack_descriptor, all_threads=False)
        faulthandler.register(signal.SIGUSR1, file=stack_descriptor, all_threads=False, chain=False)


def is_of_the_interpreter(folder):
    """Whether a folder holds the standard library or was named by PYTHONPATH; the rest are packages of another Python."""
    standard = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    archive = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    # As `site` has written them into `sys.path`: absolute, and without a slash at the end.
    named = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return folder in standard or folder in named or os.path.basename(folder) in ("lib-dynload", archive)
