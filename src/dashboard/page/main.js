// The page: which run is shown, which view, which colours.

import { Compare, REFRESH } from "./compare.js";
import { update } from "./keep.js";
import { Run } from "./run.js";
import { $, element, when } from "./words.js";

const page = { run: null, byTime: false, view: "run", cards: [] };
const compare = new Compare((id) => {
  location.hash = encodeURIComponent(id);
  setView("run");
});

/** The theme that the user chose on this page before; null also if the browser stores nothing. */
function chosenTheme() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
}

function chooseTheme(theme) {
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // The choice ends with the page.
  }
  setTheme(theme);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  page.run?.recolour();
  compare.recolour();
}

function setAcross(byTime) {
  page.byTime = byTime;
  $("by-steps").ariaPressed = String(!byTime);
  $("by-time").ariaPressed = String(byTime);
  page.run?.setAcross(byTime);
  compare.setAcross(byTime);
}

function setView(view) {
  page.view = view;
  for (const name of ["run", "compare"]) {
    $(name).hidden = name !== view;
    $(`show-${name}`).ariaPressed = String(name === view);
  }
  if (view === "compare") compare.show(page.cards);
}

/** The run that the address names. */
function named() {
  const name = location.hash.slice(1);
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // It was typed by hand.
  }
}

/** Shows the run that the address names, or else stays with the one on view, or else shows the newest. */
function follow() {
  const wanted = named();
  const id = page.cards.find((card) => card.id === wanted)?.id ?? page.run?.id ?? page.cards[0]?.id;
  if ($("choice").value !== id) $("choice").value = id ?? "";
  if (id === undefined || id === page.run?.id) return;
  page.run?.leave();
  page.run = new Run(id, page.byTime);
}

async function list() {
  try {
    const answer = await fetch("runs/");
    if (answer.ok) page.cards = await answer.json();
  } catch {
    return; // The run on view shows that the dashboard does not answer.
  }
  const options = page.cards.map((card) => {
    const words = [card.state === "running" ? "●" : "", card.name, when(card.started_unix_ms)];
    return element("option", { key: card.id, value: card.id }, words.filter((word) => word).join(" · "));
  });
  update($("choice"), options);
  follow();
  if (page.view === "compare") await compare.show(page.cards);
}

$("theme").onclick = () => chooseTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
$("by-steps").onclick = () => setAcross(false);
$("by-time").onclick = () => setAcross(true);
$("show-run").onclick = () => setView("run");
$("show-compare").onclick = () => setView("compare");
$("choice").onchange = () => (location.hash = encodeURIComponent($("choice").value));
window.addEventListener("hashchange", follow);
// A page may be opened behind another, and is not to be empty when it is first seen.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) list();
});

// The system's theme, until the user chooses one.
const system = matchMedia("(prefers-color-scheme: dark)");
const followSystem = () => setTheme(chosenTheme() ?? (system.matches ? "dark" : "light"));
system.addEventListener("change", followSystem);
followSystem();

/** Refreshes the list again and again. The next look begins some time after this one is over. */
async function refresh() {
  if (!document.hidden) await list();
  setTimeout(refresh, REFRESH);
}
await refresh();
