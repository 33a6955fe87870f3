"""Child processes that may hang or be killed. Each leads a process group, and its files in shared memory are removed with it."""

import os
import subprocess
import tempfile
import time

import psutil

# The environment variable with the folder in shared memory in which a child puts files.
FOLDER = "REPLAY_BENCH_FOLDER"
# The process that cleans up after `multiprocessing` once the other processes are gone.
TRACKER = "multiprocessing.resource_tracker"
PATIENCE_S = 5


def start(command):
    folder = tempfile.TemporaryDirectory(dir="/dev/shm")
    environment = os.environ | {FOLDER: folder.name}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment)
    child.folder = folder
    return child


def members(group):
    """The living processes of a process group, each with whether it is the resource tracker."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append((process, TRACKER in " ".join(process.cmdline())))
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def end_group(child):
    """Kills the child and its processes, lets the resource tracker remove their semaphores, and removes the child's files."""
    for process, is_tracker in members(child.pid):
        if not is_tracker:
            kill(process)
    deadline = time.monotonic() + PATIENCE_S
    while members(child.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process, _ in members(child.pid):
        kill(process)
    child.folder.cleanup()


def kill(process):
    try:
        process.kill()
    except psutil.NoSuchProcess:
        pass
