// Numbers and times in words, and the making of elements.

/** The element with this id. */
export const $ = (id) => document.getElementById(id);

const SUFFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** A number with three significant digits, for instance 12.3k. */
export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  for (const [unit, suffix] of SUFFIXES) {
    if (size >= unit) return Number((value / unit).toPrecision(3)) + suffix;
  }
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

/** A whole number with groups of thousands. */
export function grouped(value) {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en") : "–";
}

/** A return, with as many decimals as in the terminal (src/readable.rs): a goal may be 0.95. */
export function score(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 999_999.5) return short(value);
  return value.toFixed(size < 9.995 ? 2 : size < 9999.5 ? 1 : 0);
}

export function percent(share) {
  return Number.isFinite(share) ? `${(100 * share).toFixed(0)} %` : "–";
}

/** A duration, for instance 1:02:03. */
export function clock(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (part) => String(part).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

export function when(unixMs) {
  return new Date(unixMs).toLocaleString();
}

/** An element with properties and children; text is text, never markup. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
