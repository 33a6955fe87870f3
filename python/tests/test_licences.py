"""The package contains the texts of its licences, and of the licence of the code that it ships."""

import importlib.metadata
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("LICENSE-MIT", "LICENSE-MIT"),
        ("LICENSE-APACHE", "LICENSE-APACHE"),
        ("LICENSE-uPlot", "src/dashboard/page/uplot.LICENSE"),
    ],
)
def test_the_package_holds_the_texts_of_its_licences(name, source):
    text = importlib.metadata.distribution("shoal-rl").read_text(f"licenses/{name}")
    assert text == (ROOT / source).read_text(encoding="utf-8")
