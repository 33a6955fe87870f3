"""Tests that train take their time on a machine that others use too."""

import faulthandler

import pytest

WATCHDOG_S = 600


@pytest.fixture(autouse=True)
def watchdog():
    """As that of the folder above, with more patience."""
    faulthandler.dump_traceback_later(WATCHDOG_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
