// The page: which run is shown, which view, which colours.

import { Compare, REFRESH } from "./compare.js";
import { Run } from "./run.js";
import { element, when } from "./words.js";

const $ = (id) => document.getElementById(id);
const page = { run: null, byTime: false, view: "run", cards: [] };
const compare = new Compare((id) => {
  location.hash = id;
  setView("run");
});

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
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

/** Show the run that the address names, or the newest. */
function follow() {
  const named = decodeURIComponent(location.hash.slice(1));
  const id = page.cards.some((card) => card.id === named) ? named : page.cards[0]?.id;
  $("choice").value = id ?? "";
  if (id === undefined || id === page.run?.id) return;
  page.run?.leave();
  page.run = new Run(id, page.byTime);
}

async function list() {
  try {
    const answer = await fetch("runs/");
    if (answer.ok) page.cards = await answer.json();
  } catch {
    return; // The run that is shown tells that the dashboard does not answer.
  }
  const options = page.cards.map((card) => {
    const words = [card.state === "running" ? "●" : "", card.name, when(card.started_unix_ms)];
    return element("option", { value: card.id }, words.filter((word) => word).join(" · "));
  });
  // An open list would close under the reader's hand.
  if (document.activeElement !== $("choice")) $("choice").replaceChildren(...options);
  follow();
  if (page.view === "compare") await compare.show(page.cards);
}

$("theme").onclick = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
$("by-steps").onclick = () => setAcross(false);
$("by-time").onclick = () => setAcross(true);
$("show-run").onclick = () => setView("run");
$("show-compare").onclick = () => setView("compare");
$("choice").onchange = () => {
  location.hash = $("choice").value;
  $("choice").blur();
};
window.addEventListener("hashchange", follow);

setTheme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
await list();
setInterval(list, REFRESH);
