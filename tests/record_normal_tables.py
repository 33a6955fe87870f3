"""Writes src/environments/numpy/normal/tables.rs from libnpyrandom.a, NumPy's random generators for C programs.

    .venv/bin/python tests/record_normal_tables.py    # needs ar and readelf; NumPy 2.4.6

The last bits of NumPy's tables differ from what today's formulas give, so the tables are read and not computed.
"""

import re
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy

STRIPS = 256
TABLES = [
    ("THRESHOLDS", "ki_double", "Places below this lie under the curve at every height of the strip."),
    ("WIDTHS", "wi_double", "Bits of the width of a strip, per place."),
    ("HEIGHTS", "fi_double", "Bits of the height of the curve at the strip's right end."),
]
OPENING = f'''//! The tables of NumPy's ziggurat for the normal distribution, written by `tests/record_normal_tables.py` from NumPy {numpy.__version__}.
//!
//! Floating-point numbers are given as bits, because every bit counts.
'''


def read_tables(folder):
    """Reads the tables, in the order of `TABLES`, from the object file in the archive that defines them."""
    archive = Path(numpy.__file__).parent / "random" / "lib" / "libnpyrandom.a"
    subprocess.run(["ar", "x", archive], cwd=folder, check=True)
    for path in Path(folder).iterdir():
        symbols = subprocess.run(["readelf", "-sSW", path], capture_output=True, text=True, check=True).stdout
        if TABLES[0][1] not in symbols:
            continue
        content = path.read_bytes()
        sections = {int(number): int(offset, 16) for number, offset in re.findall(r"\[ *(\d+)\] \S+ +PROGBITS +\w+ (\w+)", symbols)}
        for _, symbol, _ in TABLES:
            value, section = re.search(rf": (\w+) .* (\d+) {symbol}\n", symbols).groups()
            yield struct.unpack_from(f"<{STRIPS}Q", content, sections[int(section)] + int(value, 16))


def main():
    text = OPENING
    with tempfile.TemporaryDirectory() as folder:
        for (name, _, meaning), values in zip(TABLES, read_tables(folder), strict=True):
            text += f"\n/// {meaning}\n#[rustfmt::skip]\npub(super) static {name}: [u64; {STRIPS}] = [\n"
            for row in range(0, STRIPS, 6):
                text += "    " + ", ".join(f"0x{value:016x}" for value in values[row : row + 6]) + ",\n"
            text += "];\n"
    path = Path(__file__).parent.parent / "src" / "environments" / "numpy" / "normal" / "tables.rs"
    path.write_text(text)


main()
