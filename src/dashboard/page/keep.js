// Updates that keep the elements that are there: the reader may have the focus or the mouse on one, or have selected
// its text.

import { element } from "./words.js";

/** What identifies a node among its siblings: its tag and its `key`. Equal ones go by their order. */
const identity = (node) => `${node.nodeName} ${node.key ?? ""}`;

/** Makes the children of `room` like `wanted`, elements or texts. Children with an equal identity are kept and changed. */
export function update(room, wanted) {
  const there = new Map();
  for (const node of room.childNodes) {
    const alike = there.get(identity(node)) ?? [];
    there.set(identity(node), [...alike, node]);
  }
  const children = Array.from(wanted, (child) => {
    const made = typeof child === "string" ? new Text(child) : child;
    const kept = there.get(identity(made))?.shift();
    if (kept !== undefined) copy(made, kept);
    return kept ?? made;
  });
  place(room, children);
}

/** Copies text and looks of `made` to `kept`. Equal values are not written, since writing would end a selection. */
function copy(made, kept) {
  if (kept instanceof Text) {
    if (kept.data !== made.data) kept.data = made.data;
    return;
  }
  for (const name of ["className", "title", "ariaLabel"]) {
    if (kept[name] !== made[name]) kept[name] = made[name];
  }
  // The content security policy allows a style as a property, and not as an attribute.
  for (const name of ["width", "background"]) {
    if (kept.style[name] !== made.style[name]) kept.style[name] = made.style[name];
  }
  update(kept, made.childNodes);
}

/** Makes `nodes` the children of `room`. Nodes in their place are not moved, which would end a focus or stop a video. */
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

/** Fills a table. Columns are [name, whether it has numbers], rows are [key, cells], cells are texts or elements. */
export function fill(table, columns, rows) {
  const cell = (tag, content, isNumber) => element(tag, { className: isNumber ? "number" : "" }, content);
  const head = element("tr", {}, ...columns.map(([name, isNumber]) => cell("th", name, isNumber)));
  const body = rows.map(([key, cells]) => element("tr", { key }, ...cells.map((content, index) => cell("td", content, columns[index][1]))));
  update(table, [element("thead", {}, head), element("tbody", {}, ...body)]);
}
