"""What a bench leaves: a Markdown table, a plot (SVG) and a JSON file with everything that was measured."""

import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent.parent / "scripts"))
import runs  # noqa: E402

import libraries  # noqa: E402


def start(names):
    """The head of a result: time, machine with its load, and exact versions."""
    return {
        "time": time.strftime("%Y-%m-%d %H:%M"), "python": sys.version.split()[0], "machine": runs.machine(),
        "versions": libraries.versions(names),
    }


def add_options(parser, names):
    parser.add_argument("--libraries", nargs="*", default=names, metavar="NAME", help=f"of {' '.join(names)}")
    parser.add_argument("--out", type=Path, help="folder for the table, the plot and the JSON file")


def load(names, kind):
    """The adapters of a kind, and for each library that cannot be imported the reason."""
    found, missing = {}, {}
    for name in names:
        try:
            found.update(libraries.load(name, kind))
        except ImportError as error:
            missing[name] = str(error)
            print(f"left out: {name} ({error})", flush=True)
    return found, missing


def table_of(records, rows, columns, value):
    """A table of records with `value(record)` in the cells. `rows` and `columns` are the keys whose values name them."""
    heads = list(dict.fromkeys(record[columns] for record in records))
    lines = []
    for label in dict.fromkeys(record[rows] for record in records):
        cells = {record[columns]: value(record) for record in records if record[rows] == label}
        lines.append({rows: label, **{head: cells.get(head, "") for head in heads}})
    return runs.table(lines)


def beside_before(title, records, rows, columns, value, is_rate=False):
    """A table of how many times as fast as Shoal's package of another commit (`libraries/shoal_before.py`) this one is.

    It is empty if the other package was not measured.
    """
    values = {(record[rows], record[columns]): value(record) for record in records if value(record)}
    ratios = []
    for (label, column), now in values.items():
        before = values.get((f"{label}, before", column))
        if before:
            ratios.append({rows: label, columns: column, "ratio": now / before if is_rate else before / now})
    if not ratios:
        return ""
    table = table_of(ratios, rows, columns, lambda record: f"{record['ratio']:.3f}")
    return f"{title}, times as fast as before\n\n{table}\n\n"


def figure(number):
    """A number with as many digits as were measured."""
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def bars(records, rows, columns, value, unit, path):
    """One panel per column, one bar per row, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "replay"
    heads = list(dict.fromkeys(record[columns] for record in records))
    labels = list(dict.fromkeys(record[rows] for record in records))[::-1]
    chart, panels = pyplot.subplots(1, len(heads), sharey=True, figsize=(2 + 2.3 * len(heads), 1 + 0.32 * len(labels)), squeeze=False)
    for panel, head in zip(panels[0], heads):
        values = {record[rows]: value(record) for record in records if record[columns] == head}
        shown = [label for label in labels if label in values]
        colours = ["#c0504d" if label.startswith("Shoal") else "#7f8fa9" for label in shown]
        panel.barh([labels.index(label) for label in shown], [values[label] for label in shown], color=colours)
        panel.set_xscale("log")
        panel.set_title(head, fontsize=9)
        panel.set_xlabel(unit, fontsize=8)
        panel.tick_params(labelsize=8)
        panel.grid(axis="x", alpha=0.3)
    panels[0][0].set_yticks(range(len(labels)), labels)
    chart.tight_layout()
    chart.savefig(path, metadata={"Date": None})
    pyplot.close(chart)


def finish(arguments, name, result, text, plot=None):
    """Prints the text and, with `--out`, writes the three files."""
    result["machine"]["load_average_1_min_at_the_end"] = runs.machine()["load_average_1_min"]
    foot = f"{result['time']}, {result['machine']}, Python {result['python']}, {result['versions']}"
    print(f"\n{text}\n\n{foot}")
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / f"{name}.md").write_text(f"{text}\n\n{foot}\n")
        runs.write(arguments.out / f"{name}.json", result)
        if plot:
            plot(arguments.out / f"{name}.svg")
