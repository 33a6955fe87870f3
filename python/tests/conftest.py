"""What tests share: small replays, and a watchdog against hanging."""

import faulthandler

import pytest
from transitions import FIELDS

import shoal

WATCHDOG_S = 120


@pytest.fixture(autouse=True)
def watchdog():
    """Ends the whole run with every thread's stack when a test hangs."""
    faulthandler.dump_traceback_later(WATCHDOG_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def replay():
    return shoal.Replay(64, FIELDS, seed=1)
