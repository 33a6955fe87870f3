"""What tests share: small replays. The watchdog against hanging is pytest's own (pyproject.toml)."""

import pytest
from transitions import FIELDS

import shoal


@pytest.fixture
def replay():
    return shoal.Replay(64, FIELDS, seed=1)
