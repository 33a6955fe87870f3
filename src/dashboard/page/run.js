// One run: its history as curves, what happens in it now, and its state.

import { Chart } from "./charts.js";
import { Columns, joined } from "./columns.js";
import { update } from "./keep.js";
import * as panels from "./panels.js";
import { Watch } from "./watch.js";
import { $, score, when } from "./words.js";

const TABLE_EVERY_MS = 500;
const RATES_OVER_MS = 2000;
const MOST_EVENTS = 500;
// Time after which the page says that nothing comes: the dashboard sends something every five seconds.
const SILENT_MS = 15_000;

// Keys of metrics that are shown elsewhere, or make no curve. All others, such as those of the algorithm, get a chart.
const NO_CHART = new Set([
  "wall_s", "training_s", "env_steps", "stop_env_steps", "stop_wall_s", "episodes", "updates", "inserted", "sampled", "learned", "stale_priorities",
  "saturated_priorities", "replay_capacity", "env_steps_per_s", "updates_per_s", "learned_per_s", "cores_used", "products_per_s",
  "machine_busy_share", "peak_share", "train_return_mean", "eval_return_mean", "eval_return_std", "eval_episodes", "eval_version", "best_eval_return",
  "best_eval_ci95_low", "stop_eval_return",
  "parameter_version", "policy_lag_max", "actors", "attached", "learners", "restarts", "replay_size",
]);
// Where processes spent their time. A metric of an algorithm may be named much like these.
const IS_TIME = new RegExp(
  "^(actor_(environment|inference|insert|limiter_wait|processor|core_wait)" +
    "|learner_(replay|compute|exchange|publish|limiter_wait|processor|core_wait)" +
    "|(evaluator|visualizer|supervisor)_processor)_s$",
);

export class Run {
  constructor(id, byTime) {
    this.id = id;
    this.byTime = byTime;
    this.charts = [];
    this.own = new Map();
    this.moments = [];
    this.events = [];
    this.evaluations = [];
    this.changes = [];
    this.columns = new Columns({});
    this.report = null;
    this.card = null;
    this.tablesAt = 0;
    this.makeCharts();
    this.watch = new Watch(id);
    panels.legend($("kinds"));
    $("bottleneck").textContent = "Not known yet.";
    this.onVisibility = () => (document.hidden ? this.close() : this.listen());
    document.addEventListener("visibilitychange", this.onVisibility);
    this.listen();
  }

  /** Listens to the run. A hidden page does not: a browser has six connections to a host, and drawing costs the run time. */
  listen() {
    this.close();
    this.source = new EventSource(`runs/${encodeURIComponent(this.id)}/events`);
    const on = (kind, what) =>
      this.source.addEventListener(kind, (event) => {
        this.hear();
        what(JSON.parse(event.data));
      });
    on("state", ({ card, problem }) => this.showCard(card, problem));
    on("history", (history) => this.showHistory(history));
    on("growth", (growth) => this.grow(growth));
    on("now", (report) => this.showNow(report));
    on("alive", () => {});
    this.source.onerror = ({ target }) => this.lose(target);
    this.source.onopen = () => this.hear();
    this.expect();
  }

  close() {
    clearTimeout(this.silence);
    this.source?.close();
  }

  hear() {
    this.notice("", "connection");
    this.expect();
  }

  /** Shows that nothing comes, unless something does in time: a tunnel keeps a connection open whose other end is gone. */
  expect() {
    clearTimeout(this.silence);
    const silent = "The dashboard is silent: the connection is lost, or it stands still, or it is reading the files of a long run.";
    this.silence = setTimeout(() => this.notice(silent, "connection"), SILENT_MS);
  }

  /**
   * Shows that the connection was lost. The browser then tries again, but not after an answer that is an error: the run
   * is gone, or another dashboard answered, which does not know this page's link.
   */
  async lose(source) {
    const isGone = source.readyState === EventSource.CLOSED && (await fetch("runs/").catch(() => null))?.ok;
    if (source !== this.source) return;
    clearTimeout(this.silence);
    if (isGone) this.showCard(null, null);
    this.notice(isGone ? "" : "The dashboard does not answer: it was ended, or the connection is lost.", "connection");
  }

  leave() {
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.close();
    this.source = null;
    for (const chart of [...this.charts.map(([chart]) => chart), ...this.own.values()]) chart.remove();
    for (const id of ["tiles", "processes", "replay", "events"]) $(id).replaceChildren();
  }

  makeCharts() {
    const add = (room, title, series, data, options) => this.charts.push([new Chart($(room), title, series, options), data, options?.marked]);
    const rate = (key) => () => [this.across(), this.columns.rates(key)];
    const returns = [
      { label: "training", colour: 0 }, { label: "evaluation", colour: 1, dashed: true },
      { label: "lower end of its 95 % interval", colour: 7, dashed: true }, { label: "upper end", colour: 7, dashed: true },
      { label: "confirmed", colour: 2, points: true },
    ];
    add("main-charts", "Return", returns, () => this.returns(), { height: 300, bands: [[4, 3]] });
    add("charts", "Environment steps/s", [{ label: "steps/s", colour: 0, fill: true }], rate("env_steps"), { marked: true });
    add("charts", "Updates/s", [{ label: "updates/s", colour: 1, fill: true }], rate("updates"), { marked: true });
    add("charts", "Samples/s (updates × batch)", [{ label: "samples/s", colour: 2, fill: true }], rate("learned"), { marked: true });
    const times = (who, kinds) => () => [this.across(), ...kinds.map(([key]) => this.share(who, key, kinds))];
    const actor = [["environment_s", "environment", 0], ["inference_s", "inference", 1], ["insert_s", "inserting", 2], ["limiter_wait_s", "waiting", 7]];
    const learner = [["replay_s", "replay", 3], ["compute_s", "gradients", 4], ["exchange_s", "exchange", 5], ["publish_s", "publishing", 6], ["limiter_wait_s", "waiting", 7]];
    for (const [who, kinds] of [["actor", actor], ["learner", learner]]) {
      const series = kinds.map(([, label, colour]) => ({ label, colour }));
      add("charts", `Time of ${who}s, %`, series, times(who, kinds));
    }
  }

  across() {
    return this.columns.get(this.byTime ? "wall_s" : "env_steps") ?? [];
  }

  none() {
    return new Array(this.columns.length).fill(null);
  }

  /** Training returns, by row, and evaluations, by their own steps, on one axis. */
  returns() {
    const x = this.byTime ? "wall_s" : "env_steps";
    const training = [this.across(), this.columns.get("train_return_mean") ?? this.none()];
    const of = (kind) => this.evaluations.filter((evaluation) => evaluation.kind === kind).sort((a, b) => a[x] - b[x]);
    const table = (evaluations, ...keys) => [evaluations.map((evaluation) => evaluation[x]), ...keys.map((key) => evaluations.map((evaluation) => evaluation[key] ?? null))];
    const routine = table(of("routine"), "return_mean", "ci95_low", "ci95_high");
    const tables = [training, routine, table(of("confirmation"), "return_mean")];
    return uPlot.join(tables.map(increasing));
  }

  /** Marks where the run fitted itself to the machine, with what it changed. A change has seconds, which a row has, too. */
  marks() {
    const [seconds, across] = [this.columns.get("wall_s") ?? [], this.across()];
    const found = this.changes.map(({ wall_s, knobs, to }) => {
      const row = seconds.findIndex((second) => second >= wall_s);
      const number = { "actor.count": to.actors, "actor.environments": to.environments, "learner.batch_size": to.batch_size };
      return [across[row], knobs.map((knob) => `${knob.split(".")[1]} ${number[knob]}`).join(", ")];
    });
    return found.filter(([at]) => at !== undefined);
  }

  share(who, key, kinds) {
    const all = kinds.map(([kind]) => this.columns.gains(`${who}_${kind}`));
    const own = this.columns.gains(`${who}_${key}`);
    return own.map((gain, row) => {
      const total = all.reduce((sum, gains) => sum + (gains[row] ?? 0), 0);
      return gain === null || total === 0 ? null : (100 * gain) / total;
    });
  }

  showHistory(history) {
    this.columns = new Columns(history);
    this.evaluations = history.evaluations;
    this.changes = history.changes;
    this.events = history.events;
    this.judge(history.bottleneck);
    this.draw();
  }

  grow(growth) {
    for (const row of growth.rows) this.columns.push(row);
    this.evaluations = joined(this.evaluations, growth.evaluations);
    this.changes = growth.changes;
    this.events = this.events.concat(growth.events).slice(-MOST_EVENTS);
    this.judge(growth.bottleneck);
    this.draw();
  }

  draw() {
    const drawn = JSON.stringify([this.columns.length, this.columns.last("wall_s")]);
    const marks = this.marks();
    for (const [chart, data, marked] of this.charts) chart.set(data(), this.byTime, marked ? marks : []);
    if (drawn !== this.drawn || this.byTime !== this.drawnByTime) this.drawOwn();
    [this.drawn, this.drawnByTime] = [drawn, this.byTime];
    panels.events($("events"), this.events);
    this.showTiles();
  }

  /** Draws a chart for each other key that makes a curve: losses, and all metrics of the algorithm. */
  drawOwn() {
    const keys = this.columns.keys().filter((key) => !NO_CHART.has(key) && !IS_TIME.test(key) && this.columns.get(key).some((value) => value !== null && value !== 0));
    for (const key of keys) {
      if (!this.own.has(key)) this.own.set(key, new Chart($("charts"), key.replaceAll("_", " "), [{ label: key.replaceAll("_", " "), colour: this.own.size + 3 }]));
      this.own.get(key).set([this.across(), this.columns.get(key)], this.byTime);
    }
  }

  setAcross(byTime) {
    this.byTime = byTime;
    this.draw();
  }

  recolour() {
    for (const chart of [...this.charts.map(([chart]) => chart), ...this.own.values()]) chart.draw();
  }

  showCard(card, problem) {
    this.card = card;
    this.notice(problem === null ? "" : `Nobody can look into the run: ${problem}`, "unseen");
    if (card === null) {
      this.notice("The folder of this run is gone: it was moved or removed.", "state");
      [$("state").className, $("state").textContent] = ["pill killed", "gone"];
      this.showPast();
      return;
    }
    update($("title"), [card.algorithm === null ? card.name : `${card.algorithm} on ${card.environment}`]);
    const facts = [card.name, `started ${when(card.started_unix_ms)}`, `supervisor ${card.supervisor_pid}`, card.folder.split("/").slice(-2).join("/")];
    if (card.goal !== null) facts.splice(1, 0, `goal ${score(card.goal)}`);
    update($("facts"), [facts.join(" · ")]);
    $("facts").title = card.folder;
    const [reason, ...details] = (card.reason ?? "").split("\n");
    const states = { running: "running", ended: `ended: ${reason}`, killed: "killed", kept: "kept in memory", unannounced: "not announced" };
    const state = states[card.state];
    $("state").className = `pill ${card.state}`;
    update($("state"), [state.length > 60 ? reason.split(":")[0] : state]);
    document.title = `${card.environment ?? card.name} · Shoal`;
    const killed = `Supervisor ${card.supervisor_pid} was killed, or runs in another container or on another machine: it noted no end. If it wrote a checkpoint, "shoal resume ${card.folder_word}" goes on from there.`;
    const unannounced = `Supervisor ${card.supervisor_pid} lives, and its run is not announced here: it is just beginning, or another user's, or has another XDG_RUNTIME_DIR, or this is a copy of its folder.`;
    const kept = `Supervisor ${card.supervisor_pid} is gone, and its run stays in memory: "shoal adopt ${card.folder_word}" goes on with it there.`;
    const failed = /^(failed|gave up): /.test(reason) ? [reason, ...details].join("\n") : "";
    this.notice({ killed, unannounced, kept }[card.state] ?? failed, "state");
    this.watch.showVideos(card.videos);
    if (card.state !== "running") {
      if (card.bottleneck !== null) this.showBottleneck(card.bottleneck);
      this.showPast();
    } else {
      this.showTiles();
    }
  }

  /** Hides everything that is about the present. */
  showPast() {
    this.report = null;
    this.showTables(false);
    this.watch.showPicture(null);
    this.showTiles();
  }

  /** Shows the verdict on the newest moments, unless the run has ended with a verdict in its report. */
  judge(text) {
    const hasReport = this.card && this.card.state !== "running" && this.card.bottleneck !== null;
    if (!hasReport) this.showBottleneck(text);
  }

  showBottleneck(text) {
    update($("bottleneck"), [text ?? "Not known yet."]);
  }

  /** Sets the problem from one source. One line above everything shows the most important problem. */
  notice(text, source) {
    this.notices = { ...this.notices, [source]: text };
    const shown = this.notices.connection || this.notices.state || this.notices.unseen || this.notices.segment || "";
    $("notice").hidden = shown === "";
    update($("notice"), [shown]);
  }

  showNow(report) {
    this.report = report;
    // The last picture of a visualizer that is gone does not show the present.
    const plays = report.processes.some((process) => process.role === "visualizer" && process.alive);
    this.watch.showPicture(plays ? report.picture : null);
    const now = performance.now();
    this.moments = [...this.moments.filter(([at]) => now - at < RATES_OVER_MS), [now, report.run]];
    if (report.tree || report.priorities) this.spread = { tree: report.tree, priorities: report.priorities };
    const problem = report.description_problem;
    this.notice(problem === null ? "" : `What the run says of itself cannot be read: ${problem}`, "segment");
    this.showTiles();
    this.showTables(true);
    if (now - this.tablesAt >= TABLE_EVERY_MS) {
      this.tablesAt = now;
      panels.processes($("processes"), report);
      panels.replay($("replay"), report, this.spread);
    }
  }

  /** Shows or hides the tables that only a run has that goes on. */
  showTables(shown) {
    for (const id of ["processes-card", "replay-card"]) $(id).hidden = !shown;
  }

  /** Mean rates over the last moments: rates that change five times a second would be unreadable. */
  rates() {
    const mean = (key) => {
      const known = this.moments.map(([, run]) => run[key]).filter((value) => value !== null);
      return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
    };
    const keys = ["env_steps_per_s", "updates_per_s", "learned_per_s", "cores_used", "machine_busy_share", "peak_share"];
    return Object.fromEntries(keys.map((key) => [key, mean(key)]));
  }

  showTiles() {
    const metrics = Object.fromEntries(this.columns.keys().map((key) => [key, this.columns.last(key)]));
    const report = this.report;
    const isOver = this.card?.state !== "running";
    const rates = isOver ? panels.averages(metrics, this.card) : report ? this.rates() : null;
    panels.tiles($("tiles"), panels.facts(metrics, report, rates));
    const { share, words } = panels.progress(metrics, report, this.card?.stop_env_steps);
    $("progress").hidden = share === null;
    $("progress").firstElementChild.style.width = `${100 * (share ?? 0)}%`;
    $("progress").title = words;
  }
}

/** The table without rows that do not lie to the right of the row before: uPlot needs a growing first column. */
export function increasing(table) {
  let last = -Infinity;
  const kept = [...table[0].keys()].filter((index) => table[0][index] > last && ((last = table[0][index]), true));
  return table.map((column) => kept.map((index) => column[index]));
}
