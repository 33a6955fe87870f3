// Charts that look alike: uPlot with this page's colours, sizes and words.

import { clock, element, short } from "./words.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/** The name of the colour of a series: there are eight. */
export const colourName = (index) => `--c${index % 8}`;
const seriesColour = (index) => colour(colourName(index));

/**
 * A chart in a card of its own. Each of `series` is {label, colour, points, fill, dashed}. The data are columns, of which
 * the first is the horizontal axis.
 */
export class Chart {
  constructor(parent, title, series, { height = 180, bands = [] } = {}) {
    this.series = series;
    this.bands = bands;
    this.height = height;
    this.byTime = false;
    this.room = element("div");
    this.card = element("div", { className: "card chart" }, element("h2", {}, title), this.room);
    parent.append(this.card);
    this.data = [[], ...series.map(() => [])];
    this.marks = [];
    // The range that the user has dragged out; it stays on view until a double click.
    this.zoom = null;
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.room);
    this.draw();
  }

  draw() {
    this.plot?.destroy();
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    // A short range gets decimals: several marks of the axis would otherwise have the same second.
    const time = (values) => (values.at(-1) - values[0] < 20 ? (value) => `${short(value)} s` : clock);
    const across = (values) => values.map(this.byTime ? time(values) : short);
    const series = this.series.map((one, index) => {
      const stroke = seriesColour(one.colour ?? index);
      return {
        label: one.label, stroke, width: one.points ? 0 : 1.6, dash: one.dashed ? [5, 4] : undefined,
        fill: one.fill ? `${stroke}33` : undefined, paths: one.points ? () => null : undefined,
        points: { show: one.points ?? false, size: 7, stroke, fill: stroke }, value: (_, value) => short(value),
      };
    });
    const options = {
      width: Math.max(200, this.room.clientWidth), height: this.height, cursor: { y: false, bind: { dblclick: (_, __, reset) => (event) => this.showAll(reset, event) } },
      scales: { x: { time: false } },
      axes: [{ ...axis, values: (_, values) => across(values) }, { ...axis, size: 56, values: (_, values) => values.map(short) }],
      series: [{ label: "at", value: (_, value) => (value === null ? "–" : this.byTime ? clock(value) : short(value)) }, ...series],
      hooks: { draw: [(plot) => this.drawMarks(plot)], setSelect: [(plot) => this.keepZoom(plot)] },
      bands: this.bands.map((band) => ({ series: band, fill: `${seriesColour(this.series[band[0] - 1].colour ?? 0)}22` })),
    };
    this.plot = new uPlot(options, this.data, this.room);
    if (this.zoom !== null) this.plot.setScale("x", this.zoom);
  }

  keepZoom(plot) {
    const { left, width } = plot.select;
    if (width > 0) this.zoom = { min: plot.posToVal(left, "x"), max: plot.posToVal(left + width, "x") };
  }

  showAll(reset, event) {
    this.zoom = null;
    reset(event);
  }

  /** Draws the marks, [where, words], as upright lines with words. Words that would overlap others are left out. */
  drawMarks(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--faint");
    ctx.font = `${11 * devicePixelRatio}px sans-serif`;
    // uPlot has set another alignment for the numbers of the axis.
    ctx.textAlign = "left";
    ctx.setLineDash([3, 3]);
    let free = -Infinity;
    for (const [at, words] of this.marks) {
      const x = plot.valToPos(at, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const { width } = ctx.measureText(words);
      const left = Math.min(x + 4, bbox.left + bbox.width - width);
      if (left < free) continue;
      ctx.fillText(words, left, bbox.top + 12 * devicePixelRatio);
      free = left + width + 4;
    }
    ctx.restore();
  }

  set(data, byTime, marks = []) {
    this.data = data;
    this.marks = marks;
    if (byTime !== this.byTime) {
      this.byTime = byTime;
      this.zoom = null;
      this.draw();
    } else if (this.zoom === null) {
      this.plot.setData(data);
    } else {
      this.plot.setData(data, false);
      this.plot.setScale("x", this.zoom);
    }
  }

  resize() {
    const width = Math.max(200, this.room.clientWidth);
    if (width !== this.plot.width) this.plot.setSize({ width, height: this.height });
  }

  remove() {
    this.watcher.disconnect();
    this.plot.destroy();
    this.card.remove();
  }
}
