// The parts of the page that change several times a second: tiles, the process table, the replay; and the events.

import { fill, update } from "./keep.js";
import { clock, element, grouped, percent, score, short, when } from "./words.js";

const KINDS = ["environment", "inference", "insert", "limiter_wait", "replay", "compute", "exchange", "publish"];
const KIND_WORDS = { limiter_wait: "waiting for the rate limiter", insert: "inserting", compute: "gradients", exchange: "gradient exchange" };

/** A line of tiles, each [words, value]. */
export function tiles(room, facts) {
  update(room, facts.map(([words, value]) => element("div", { className: "tile" }, element("b", {}, value), element("span", {}, words))));
}

/** The rates of a run that has ended, over all its training: its last line of metrics has those of the last moment. */
export function averages(metrics, card) {
  const perSecond = (key) => metrics[key] / metrics.training_s;
  const { cores_used, machine_busy_share, peak_share } = card ?? {};
  const rates = { env_steps_per_s: perSecond("env_steps"), updates_per_s: perSecond("updates"), learned_per_s: perSecond("learned") };
  return { ...rates, cores_used, machine_busy_share, peak_share };
}

/** The tiles of a run: from its last line of metrics, its rates and, while it goes on, the report of its segment. */
export function facts(metrics, report, rates) {
  const scores = report?.scores ?? {};
  const training = scores.training?.return_mean ?? metrics.train_return_mean;
  const evaluation = scores.evaluation?.return_mean ?? metrics.eval_return_mean;
  const replay = report?.replay;
  const filled = replay ? replay.fill : metrics.replay_size / metrics.replay_capacity;
  return [
    ["return in training, newest 100 episodes", score(training)],
    ["return in the newest evaluation", score(evaluation)],
    ["best confirmed return", score(metrics.best_eval_return)],
    ["environment steps", grouped(report?.run.env_steps ?? metrics.env_steps)],
    ["environment steps/s", short(rates?.env_steps_per_s ?? metrics.env_steps_per_s)],
    ["updates/s", short(rates?.updates_per_s ?? metrics.updates_per_s)],
    ["samples/s", short(rates?.learned_per_s ?? metrics.learned_per_s)],
    ["cores used", short(rates?.cores_used ?? metrics.cores_used)],
    ["of the machine busy, whoever computes", percent(rates?.machine_busy_share ?? metrics.machine_busy_share)],
    ["of what the cores could compute", percent(rates?.peak_share ?? metrics.peak_share)],
    ["policy lag, mean updates", short(report?.run.policy_lag_mean ?? metrics.policy_lag_mean)],
    ["replay filled", percent(filled)],
    ["time", clock(metrics.wall_s ?? report?.header.age_s)],
  ];
}

/** How far a run has come to its limit of steps or of time, whichever is nearer: a share, null without a limit, and words. */
export function progress(metrics, report, stopSteps) {
  const [steps, seconds] = [report?.run.env_steps ?? metrics.env_steps ?? 0, metrics.wall_s ?? 0];
  const limits = [[steps, stopSteps, `${steps} of ${stopSteps} environment steps`]];
  limits.push([seconds, metrics.stop_wall_s, `${clock(seconds)} of ${clock(metrics.stop_wall_s)}`]);
  const known = limits.filter(([, limit]) => limit > 0);
  const share = known.length === 0 ? null : Math.min(1, Math.max(...known.map(([done, limit]) => done / limit)));
  return { share, words: known.map(([, , words]) => words).join(", ") };
}

function split(time) {
  const bar = element("div", { className: "split", role: "img" });
  KINDS.forEach((kind, index) => {
    if (!(time[kind] > 0)) return;
    const part = element("i", { key: kind, className: `k${index}`, title: `${KIND_WORDS[kind] ?? kind} ${percent(time[kind])}` });
    part.style.width = `${100 * time[kind]}%`;
    bar.append(part);
  });
  bar.ariaLabel = Array.from(bar.children, (part) => part.title).join(", ") || "none yet";
  return bar;
}

const COLUMNS = [["process"], ["pid", true], ["state"], ["phase"], ["heartbeat", true], ["restarts", true], ["done", true], ["rate", true], ["cores", true], ["inserted", true], ["time spent"], [""]];

export function processes(table, report) {
  const rows = report.processes.map((process) => {
    const state = process.state === "live" ? (process.alive ? "alive" : "dead") : process.state;
    const learns = process.updates > 0;
    const cells = [
      process.role === null ? "–" : `${process.role} ${process.number}`.replaceAll("_", " "),
      process.pid === 0 ? "–" : String(process.pid),
      element("span", { className: state }, state),
      (process.phase ?? "–").replaceAll("_", " "),
      process.heartbeat_age_ms === null ? "–" : `${grouped(process.heartbeat_age_ms)} ms`,
      String(process.restarts),
      learns ? `${grouped(process.updates)} updates` : process.env_steps > 0 ? `${grouped(process.env_steps)} steps` : "–",
      rate(learns ? process.updates_per_s : process.env_steps_per_s),
      process.cores_used === null ? "–" : process.cores_used.toFixed(2),
      process.insert_share === null ? "–" : percent(process.insert_share),
      split(process.time),
      (process.last_words ?? "").split("\n")[0],
    ];
    return [process.slot, cells];
  });
  fill(table, COLUMNS, rows);
}

const rate = (value) => (value > 0 ? `${short(value)}/s` : "–");

export function legend(room) {
  room.replaceChildren(...KINDS.map((kind, index) => element("span", {}, element("i", { className: `k${index}` }), KIND_WORDS[kind] ?? kind)));
}

/** The replay's counts, and the distribution of its priorities. */
export function replay(room, report, spread) {
  const { replay } = report;
  const pairs = [
    ["filled", `${grouped(replay.size)} of ${grouped(replay.capacity)} (${percent(replay.fill)})`],
    ["inserted", grouped(replay.inserted)],
    ["sampled", `${grouped(replay.sampled)}${replay.samples_per_insert === null ? "" : `, ${replay.samples_per_insert.toFixed(2)} per insert`}`],
    ["late priorities", grouped(replay.stale_priorities)],
    ["parameters", `version ${grouped(report.parameters.version)}, ${grouped(report.parameters.count)} values`],
    ["policy lag", `${short(report.run.policy_lag_mean)} updates on average, ${grouped(report.run.policy_lag_max)} at most`],
    ["repairs", grouped(report.run.repairs)],
  ];
  if (spread?.tree) pairs.push(["sum tree", spread.tree.verdict.replaceAll("_", " ")]);
  const list = element("dl", { className: "facts" });
  for (const [name, value] of pairs) list.append(element("dt", {}, name), element("dd", {}, value));
  update(room, spread?.priorities ? [list, histogram(spread.priorities)] : [list]);
}

function histogram(priorities) {
  // A group and not an image, so that screen readers read its numbers.
  const room = element("div", { className: "bins", role: "group", ariaLabel: "priorities by powers of two" });
  const highest = Math.max(1, ...priorities.bins.map((bin) => bin.count));
  for (const bin of [...priorities.bins].reverse()) {
    const key = bin.at_least;
    const bar = element("div", { key });
    bar.style.width = `${(100 * bin.count) / highest}%`;
    const bounds = element("span", { key, className: "faint" }, `${short(bin.at_least)} – ${short(bin.below)}`);
    room.append(bounds, bar, element("span", { key }, grouped(bin.count)));
  }
  return room;
}

const MOMENT = /^\d{4}-\d\d-\d\dT[\d:.]+Z/;

/** An event with its time, which the log has in UTC, in the reader's time zone. */
function local(event) {
  return event.replace(MOMENT, (moment) => (Number.isNaN(Date.parse(moment)) ? moment : when(Date.parse(moment))));
}

/** Events of the log, the newest first. A line that does not begin with a time belongs to the event before it. */
export function events(list, lines) {
  const whole = [];
  for (const line of lines) {
    if (whole.length > 0 && !/^\d{4}-/.test(line)) whole.push(`${whole.pop()}\n${line}`);
    else whole.push(line);
  }
  const shown = whole.length > 0 ? whole.reverse() : ["none yet"];
  // The first line identifies an event: more lines may come after it.
  update(list, shown.map((line) => element("li", { key: line.split("\n")[0] }, local(line))));
}
