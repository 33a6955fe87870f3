// Updates that keep the elements that are there: a reader has hold of them, with the keyboard, the mouse, or a selection of their words.

import { element } from "./words.js";

/** What a node stands for among those beside it: of its tag, the one with its `key`, or the next of those without a key. */
const meaning = (node) => `${node.nodeName} ${node.key ?? ""}`;

/** Make the children of `room` like `wanted`, elements or texts. What stands for the same stays, and changes where it differs. */
export function update(room, wanted) {
  const there = new Map();
  for (const node of room.childNodes) {
    const alike = there.get(meaning(node)) ?? [];
    there.set(meaning(node), [...alike, node]);
  }
  const children = Array.from(wanted, (child) => {
    const made = typeof child === "string" ? new Text(child) : child;
    const kept = there.get(meaning(made))?.shift();
    if (kept !== undefined) liken(kept, made);
    return kept ?? made;
  });
  place(room, children);
}

/** Give a node the words and looks of another. What is equal is not touched, since to write it anew would end a selection. */
function liken(kept, made) {
  if (kept instanceof Text) {
    if (kept.data !== made.data) kept.data = made.data;
    return;
  }
  for (const name of ["className", "title", "ariaLabel"]) {
    if (kept[name] !== made[name]) kept[name] = made[name];
  }
  // The content policy lets a style be set as a property, and not as an attribute.
  if (kept.style.width !== made.style.width) kept.style.width = made.style.width;
  update(kept, made.childNodes);
}

/** Make `nodes` the children of `room`. What is in its place is not moved: it would lose the focus, and a video would stop. */
export function place(room, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...room.childNodes]) {
    if (!wanted.has(child)) child.remove();
  }
  let next = room.firstChild;
  for (const node of nodes) {
    if (node === next) next = next.nextSibling;
    else room.insertBefore(node, next);
  }
}

/** Give a table these columns, [name, whether it has numbers], and rows, [what it stands for, its cells]; cells are texts or elements. */
export function fill(table, columns, rows) {
  const cell = (tag, content, isNumber) => element(tag, { className: isNumber ? "number" : "" }, content);
  const head = element("tr", {}, ...columns.map(([name, isNumber]) => cell("th", name, isNumber)));
  const body = rows.map(([key, cells]) => element("tr", { key }, ...cells.map((content, index) => cell("td", content, columns[index][1]))));
  update(table, [element("thead", {}, head), element("tbody", {}, ...body)]);
}
