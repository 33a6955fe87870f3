// All runs side by side: what they reached, and the curves of those that are chosen.

import { Chart, colourName } from "./charts.js";
import { fill } from "./keep.js";
import { increasing } from "./run.js";
import { $, clock, element, grouped, score, short, when } from "./words.js";

/** Milliseconds between two looks at the list of runs. */
export const REFRESH = 5000;
const MOST_AT_ONCE = 8;
const COLUMNS = [["show"], ["run"], ["state"], ["environment"], ["algorithm"], ["seed", true], ["steps", true], ["time", true], ["training", true], ["evaluation", true], ["best confirmed", true], ["steps/s", true], ["updates/s", true], ["samples/s", true], ["started"]];

export class Compare {
  constructor(open) {
    this.open = open;
    // The number of the colour of each chosen run, by id. A run keeps it when others come and go.
    this.chosen = new Map();
    this.histories = new Map();
    this.chart = null;
    this.byTime = false;
  }

  /** Shows these cards. At first, the newest runs of the newest run's environment are chosen. */
  async show(cards) {
    this.cards = cards;
    if (!this.hasChosen && cards.length > 0) {
      this.hasChosen = true;
      const alike = cards.filter((card) => card.environment === cards[0]?.environment);
      for (const card of alike.slice(0, MOST_AT_ONCE)) this.choose(card.id);
    }
    await this.refresh();
  }

  async refresh() {
    this.table();
    await this.load();
    this.draw();
  }

  /** Chooses a run, with the first colour that no other has. */
  choose(id) {
    const taken = new Set(this.chosen.values());
    let colour = 0;
    while (taken.has(colour)) colour += 1;
    this.chosen.set(id, colour);
  }

  table() {
    const rows = this.cards.map((card) => {
      const box = element("input", { type: "checkbox", checked: this.chosen.has(card.id), ariaLabel: `show ${card.id}` });
      box.onchange = () => {
        if (box.checked) this.choose(card.id);
        else this.chosen.delete(card.id);
        this.refresh();
      };
      const swatch = this.chosen.has(card.id) ? element("i") : null;
      if (swatch) swatch.style.background = `var(${colourName(this.chosen.get(card.id))})`;
      const name = element("button", { textContent: card.name, title: card.id });
      name.onclick = () => this.open(card.id);
      const metrics = card.metrics ?? {};
      const state = { ended: (card.reason ?? "ended").split("\n")[0].slice(0, 40), unannounced: "not announced" }[card.state] ?? card.state;
      const perSecond = (key) => short(metrics[key] / metrics.training_s);
      const cells = [
        element("label", {}, swatch, box), name, element("span", { className: card.state }, state),
        card.environment ?? "–", card.algorithm ?? "–", card.seed ?? "–", grouped(metrics.env_steps), clock(metrics.wall_s),
        score(metrics.train_return_mean), score(metrics.eval_return_mean), score(metrics.best_eval_return), perSecond("env_steps"), perSecond("updates"), perSecond("learned"), when(card.started_unix_ms),
      ];
      return [card.id, cells];
    });
    fill($("runs"), COLUMNS, rows);
  }

  /** Whether the whole history of a run that has ended is known: one that was fetched before the end lacks the end. */
  isWhole(card) {
    const history = this.histories.get(card.id);
    return history !== undefined && history.state === card.state && history.until === card.metrics?.wall_s;
  }

  /** Fetches the histories that are not known, and those that may have grown. */
  async load() {
    const wanted = this.cards.filter((card) => this.chosen.has(card.id) && (card.state === "running" || !this.isWhole(card)));
    await Promise.all(wanted.map(async (card) => {
      try {
        const answer = await fetch(`runs/${encodeURIComponent(card.id)}/returns`);
        if (answer.ok) this.histories.set(card.id, { ...(await answer.json()), state: card.state, until: card.metrics?.wall_s });
      } catch {
        // The next look fetches it again; the known part stays on view.
      }
    }));
  }

  draw() {
    const shown = this.cards.filter((card) => this.chosen.has(card.id) && this.histories.has(card.id));
    // Several runs may have one name, and no two have one id.
    const isUnique = ({ name }) => shown.filter((other) => other.name === name).length === 1;
    const series = shown.map((card) => ({ label: `${isUnique(card) ? card.name : card.id} (${card.algorithm})`, colour: this.chosen.get(card.id) }));
    const drawn = JSON.stringify(series);
    if (this.drawn !== drawn) {
      this.chart?.remove();
      this.chart = new Chart($("compared-charts"), "Return in training", series, { height: 340 });
      this.drawn = drawn;
    }
    if (shown.length === 0) return;
    const tables = shown.map((card) => {
      const columns = this.histories.get(card.id).columns;
      const across = columns[this.byTime ? "wall_s" : "env_steps"] ?? [];
      return increasing([across, columns.train_return_mean ?? across.map(() => null)]);
    });
    this.chart.set(uPlot.join(tables), this.byTime);
  }

  setAcross(byTime) {
    this.byTime = byTime;
    if (this.chart) this.draw();
  }

  recolour() {
    this.chart?.draw();
  }
}
