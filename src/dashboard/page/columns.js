// The data that grow while a page is open, in bounded room: curves as columns of equal length, which grow by rows, and
// evaluations. The server keeps as many (src/dashboard/history.rs), so that an open page shows what a reload does.

// When there are more rows than a chart has pixels, every other one is dropped, and only every other new one is kept.
const MOST_ROWS = 4096;
const PROGRESS = "env_steps";
const MOST_EVALUATIONS = 4096;

/**
 * The evaluations with `more` of them. If the run went on from a checkpoint, the curve leaves out what was evaluated before
 * of the steps that it repeats. Confirmations of them stay, since those weights existed and may be the best.
 */
export function joined(evaluations, more) {
  const kept = [...evaluations];
  const isRoutine = ({ kind }) => kind === "routine";
  for (const evaluation of more) {
    for (let last; isRoutine(evaluation) && (last = kept.findLastIndex(isRoutine)) >= 0 && kept[last][PROGRESS] > evaluation[PROGRESS]; ) {
      kept.splice(last, 1);
    }
    kept.push(evaluation);
  }
  return thinned(kept);
}

/**
 * The evaluations or, if there are too many, without every other one of the kind that has more. Evaluations that made
 * their weights the best stay.
 */
function thinned(evaluations) {
  let kept = evaluations;
  for (let before = Infinity; kept.length > MOST_EVALUATIONS && kept.length < before; ) {
    before = kept.length;
    const isRoutine = ({ kind }) => kind === "routine";
    const goesForRoutine = 2 * kept.filter(isRoutine).length >= before;
    let ofTheKind = 0;
    kept = kept.filter((evaluation) => isRoutine(evaluation) !== goesForRoutine || evaluation.is_best === true || ++ofTheKind % 2 === 0);
  }
  return kept;
}

export class Columns {
  /** Columns that go on from those of the server, with how it has thinned them so far. */
  constructor({ columns = {}, rows_so_far = 0, stride = 1, newest_is_passing = false }) {
    this.all = columns;
    this.rowsSoFar = rows_so_far;
    this.stride = stride;
    // Whether the newest row is one that the stride leaves out. It stays until the next row comes, so that curves always
    // end with the newest values.
    this.newestIsPassing = newest_is_passing;
  }

  get(key) {
    return this.all[key];
  }

  keys() {
    return Object.keys(this.all);
  }

  get length() {
    return this.all[PROGRESS]?.length ?? 0;
  }

  last(key) {
    return this.all[key]?.at(-1) ?? null;
  }

  push(row) {
    if (typeof row[PROGRESS] !== "number") return;
    // A run that went on from a checkpoint repeats the steps after it.
    let kept = this.length - (this.newestIsPassing ? 1 : 0);
    while (kept > 0 && this.all[PROGRESS][kept - 1] > row[PROGRESS]) kept -= 1;
    for (const column of Object.values(this.all)) column.length = kept;
    this.rowsSoFar += 1;
    this.newestIsPassing = this.rowsSoFar % this.stride !== 0;
    for (const [key, value] of Object.entries(row)) {
      if (value !== null && typeof value !== "number") continue;
      this.all[key] ??= new Array(kept).fill(null);
      this.all[key].push(value);
    }
    for (const column of Object.values(this.all)) {
      if (column.length <= kept) column.push(null);
    }
    if (this.length >= MOST_ROWS && !this.newestIsPassing) this.thin();
  }

  thin() {
    this.stride *= 2;
    for (const key of this.keys()) {
      const column = this.all[key];
      this.all[key] = column.filter((_, index) => (column.length - 1 - index) % 2 === 0);
    }
  }

  /** The gain from row to row of a column that only grows. */
  gains(key) {
    const column = this.all[key] ?? [];
    return column.map((value, index) => (index === 0 || value === null ? null : Math.max(0, value - (column[index - 1] ?? 0))));
  }

  /**
   * How fast a column that only grows did so from row to row, per second. The rates in the rows themselves are of single
   * seconds, of which thinning leaves few.
   */
  rates(key) {
    const gained = this.gains(key);
    return this.gains("wall_s").map((seconds, row) => (seconds > 0 && Number.isFinite(gained[row]) ? gained[row] / seconds : null));
  }
}
