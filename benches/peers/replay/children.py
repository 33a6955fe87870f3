"""Children that may hang or be killed: each leads a group of its own, and what it leaves in shared memory goes with it."""

import os
import subprocess
import tempfile
import time

import psutil

# Names the folder in shared memory in which a child puts files.
FOLDER = "REPLAY_BENCH_FOLDER"
# What clears up after `multiprocessing` once its processes are gone.
TRACKER = "multiprocessing.resource_tracker"
PATIENCE_S = 5


def start(command):
    folder = tempfile.TemporaryDirectory(dir="/dev/shm")
    environment = os.environ | {FOLDER: folder.name}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment)
    child.folder = folder
    return child


def members(group):
    found = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append((process, TRACKER in " ".join(process.cmdline())))
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def end_group(child):
    """Kill the child and what it started, let its tracker remove their semaphores, and remove its files."""
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
