"""Become the command that follows, to which the kernel refuses `pidfd_open`, as to all programs in an old Docker."""

import ctypes
import os
import struct
import sys

PIDFD_OPEN = 434
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
PR_SET_NO_NEW_PRIVS = 38

# Load the number of the call; if it is this one, fail with EPERM (1), else allow it.
STEPS = [(0x20, 0, 0, 0), (0x15, 0, 1, PIDFD_OPEN), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]

steps = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in STEPS))
program = ctypes.create_string_buffer(struct.pack("HP", len(STEPS), ctypes.addressof(steps)))
prctl = ctypes.CDLL(None).prctl
prctl.argtypes = [ctypes.c_int] + 4 * [ctypes.c_ulong]
for call in [(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0)]:
    if prctl(*call) != 0:
        sys.exit("this kernel refuses nothing to a program (seccomp)")
os.execvp(sys.argv[1], sys.argv[1:])
