"""The curves and the table of a run."""

import json
import sys
from types import SimpleNamespace

import shoal
from shoal.metrics import Metrics

SHORT = {"stop_env_steps": 2000}


def test_a_plot_has_routine_evaluations_alone_and_steps_that_were_taken_again_only_once(folder):
    run = shoal.train("cartpole_dqn", run=SHORT, quiet=True)
    # As if the run had been killed and resumed from the checkpoint at 700 steps.
    evaluations = [("routine", 400, 20.0), ("confirmation", 400, 25.0), ("routine", 1200, 90.0), ("routine", 800, 50.0)]
    lines = (dict(zip(("kind", "env_steps", "return_mean"), line, strict=True)) for line in evaluations)
    (run.folder / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write("".join(f'{{"env_steps": {steps}, "train_return_mean": 1.0}}\n' for steps in (700, 3000)))
    drawn, _ = drawn_of(run)
    assert drawn[f"{run.folder.name}, evaluation"] == ((400, 800), (20.0, 50.0))
    steps = drawn[f"{run.folder.name}, training"][0]
    assert steps[-2:] == (700, 3000) and list(steps) == sorted(steps)


def test_a_table_of_metrics_has_steps_that_were_taken_again_only_once(tmp_path, monkeypatch):
    # As if the run had been killed and resumed from the checkpoint at 700 steps.
    written = [{"env_steps": steps} for steps in (400, 1200, 700, 900)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in written))
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    metrics = Metrics(SimpleNamespace(folder=tmp_path), follow=False)
    assert list(metrics) == written
    assert metrics.to_pandas() == [{"env_steps": steps} for steps in (400, 700, 900)]


def drawn_of(*runs):
    """The lines that `runs` draw into one picture, by their names in its legend, and what else they set there."""
    drawn, settings = {}, {}

    def plot(steps, returns, label, **_):
        drawn[label] = (steps, returns)

    axes = SimpleNamespace(plot=plot, set=settings.update, legend=lambda: None)
    assert all(run.plot(axes) is axes for run in runs)
    return drawn, settings


def test_the_legend_of_a_picture_of_several_runs_names_them_and_its_title_none(folder):
    runs = [shoal.train("cartpole_dqn", run=SHORT, seed=seed, quiet=True) for seed in (1, 2)]
    drawn, settings = drawn_of(*runs)
    assert set(drawn) == {f"{run.folder.name}, {what}" for run in runs for what in ("training", "evaluation")}
    assert "title" not in settings
