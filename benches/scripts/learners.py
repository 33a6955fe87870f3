#!/usr/bin/env python3
"""Updates per second of several learners, or of one learner elsewhere, beside one learner on the CPU, at the default placement.

Every round runs each case once, in an order that changes from round to round. The figure is the median of the rounds' ratios.

- `--counts`: so many learners, which divide every batch.
- `--devices`: one learner on the device, or one per device, as `learner.device` names them.
- `--engines`: one learner on the CPU with this `network.engine`.
- `--halves`: two learners that share the algorithm, one for the critics and one for the policy (docs/two-devices.md), on the
  CPU and on each of the devices. Updates of the critics count.
- `--apart`: a control. Two runs with one learner each at the same time; their updates are added. It shows what the machine
  gives to two unrelated processes, so that the placement is not blamed if the machine has no second core to give.

Other programs disturb such figures. Each point notes the share of the cores that other programs took. Points above
`--others` are repeated, and marked if that did not help. There is one environment step per update, and no evaluator unless
`--evaluator` is given.
"""

import argparse
import os
import statistics
import time

import runs

PRESETS = {"sac": "halfcheetah_sac", "td3": "halfcheetah_td3", "dqn": "cartpole_dqn"}
# An update with a large batch takes seconds on a core, so this preset runs only if it is named.
PIXELS = {"pixels": "rally_dqn"}
ATTEMPTS = 3
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def busy_s():
    """Processor seconds of all programs since boot, on the cores that this process may use."""
    cores, ticks = {f"cpu{core}" for core in os.sched_getaffinity(0)}, 0
    with open("/proc/stat") as file:
        for name, *times in map(str.split, file):
            if name in cores:
                user, nice, system, idle, io_wait, interrupts, soft, stolen = map(int, times[:8])
                ticks += user + nice + system + interrupts + soft + stolen
    return ticks / TICKS_PER_S


def overrides(batch, case, arguments):
    """The overrides of a run of a case, with batches of this many transitions."""
    return [
        *runs.FOREVER,
        "run.metrics_interval_s=0.1",
        f"learner.batch_size={batch}",
        f"replay.samples_per_insert={float(batch)}",
        f"replay.min_size={max(1000, batch)}",
        "replay.capacity=100000",
        f"evaluator.enabled={str(arguments.evaluator).lower()}",
        *arguments.set,
        *case,
    ]


def updates_per_s(algorithm, batch, case, copies, arguments):
    """Updates per second of `copies` simultaneous runs in all, and the share of the cores that other programs took meanwhile."""
    config = runs.ROOT / f"configs/{(PRESETS | PIXELS)[algorithm]}.toml"
    several = [runs.Run(arguments.supervisor, config, overrides(batch, case, arguments)) for _ in range(copies)]
    try:
        for run in several:
            run.wait_until("updates", 5)
        time.sleep(arguments.seconds / 4)
        pids = [pid for run in several for pid in [run.process.pid, *run.processes()]]
        before = [run.metrics()[-1] for run in several]
        busy_before = busy_s()
        own_before = {pid: runs.cpu_seconds(pid) for pid in pids}
        started = time.monotonic()
        time.sleep(arguments.seconds)
        after = [run.metrics()[-1] for run in several]
        busy = busy_s() - busy_before
        own = sum(runs.cpu_seconds(pid, known) - known for pid, known in own_before.items())
        others = max(0.0, busy - own) / (time.monotonic() - started) / len(os.sched_getaffinity(0))
    finally:
        for run in several:
            run.__exit__()
    rates = [(end["updates"] - start["updates"]) / (end["wall_s"] - start["wall_s"]) for start, end in zip(before, after)]
    return sum(rates), others


def undisturbed(algorithm, batch, case, copies, arguments):
    """The first attempt in which other programs took little enough or, without one, the attempt in which they took least."""
    best = None
    for _ in range(ATTEMPTS):
        point = updates_per_s(algorithm, batch, case, copies, arguments)
        if best is None or point[1] < best[1]:
            best = point
        if best[1] <= arguments.others:
            break
    return best


def cases_of(arguments):
    """The cases by name: overrides, and how many runs there are at the same time."""
    halves = ["learner.split=actor_critic"]
    cases = {"one": ([], 1)}
    cases |= {f"{count} learners": ([f"learner.count={count}"], 1) for count in arguments.counts}
    cases |= {f"engine {engine}": ([f"network.engine={engine}"], 1) for engine in arguments.engines}
    cases |= {name: ([f"learner.device={name}", f"learner.count={name.count(',') + 1}"], 1) for name in arguments.devices}
    if arguments.halves:
        cases["halves"] = (halves, 1)
        cases |= {f"halves on {name}": ([*halves, f"learner.device={name}"], 1) for name in arguments.devices}
    if arguments.apart:
        cases["apart"] = ([], 2)
    return cases


def compare(algorithm, batch, arguments):
    cases = cases_of(arguments)
    points = {name: [] for name in cases}
    for number in range(arguments.rounds):
        names = list(cases)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            points[name].append(undisturbed(algorithm, batch, *cases[name], arguments))
    others = max(share for case in points.values() for _, share in case)
    ratio = lambda name: statistics.median(two[0] / one[0] for two, one in zip(points[name], points["one"]))
    row = {"algorithm": algorithm, "batch": batch, **{f"{name} / one": f"{ratio(name):.2f}" for name in cases if name != "one"}}
    for name in cases:
        row[f"{name} (updates/s)"] = f"{statistics.median(rate for rate, _ in points[name]):,.1f}"
    row["others' share of the cores"] = f"{others:.0%}" + (" (disturbed)" if others > arguments.others else "")
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    algorithms = f"of {', '.join(PRESETS | PIXELS)}; {', '.join(PRESETS)} if none is named"
    parser.add_argument("algorithms", nargs="*", metavar="ALGORITHM", help=algorithms)
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256, 1024, 4096])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--others", type=float, default=0.05, help="share of the cores that other programs may take")
    parser.add_argument("--counts", type=int, nargs="*", default=[2], help="numbers of learners to compare with one")
    parser.add_argument("--devices", nargs="*", default=[], metavar="DEVICE", help="for instance cuda:0")
    parser.add_argument("--engines", nargs="*", default=[], metavar="ENGINE", help="for instance torch")
    parser.add_argument("--apart", action="store_true", help="measure two separate runs as well")
    parser.add_argument("--halves", action="store_true", help="measure two halves as well (algorithms with an actor and critics)")
    parser.add_argument("--evaluator", action="store_true", help="with the preset's evaluator")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for instance machine.affinity=false")
    parser.add_argument("--supervisor", default=runs.DEFAULT_SUPERVISOR)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if unknown := set(arguments.algorithms) - set(PRESETS | PIXELS):
        parser.error(f"no such algorithm: {', '.join(sorted(unknown))}")
    result = {"machine": runs.machine(), "set": arguments.set, "learners": []}
    print(result["machine"], flush=True)
    for algorithm in arguments.algorithms or PRESETS:
        for batch in arguments.batches:
            result["learners"].append(compare(algorithm, batch, arguments))
            print(result["learners"][-1], flush=True)
    print(f"\n{runs.table(result['learners'])}")
    runs.write(arguments.out, result)


if __name__ == "__main__":
    main()
