// The record of a call on the page. Changed entries are drawn anew, nothing else; what is settled is also told to
// screen readers, once, in a list of its own.
//
// What an update costs does not grow with the call: nothing here asks for a measure of the page, which would lay it out
// at once. Whether the end is in view is told by an observer, and the end is followed after the layout that the
// browser does for a frame, which skips entries out of view (console.css).

import { BUDGET_MS } from "./turns.js";

const SIDES = { caller: "You", agent: "Agent", note: "Note" };
const NEAR_END_PX = 60; // a reader who has scrolled further up is left there
const BEYOND_END_PX = 1 << 24;
const MAX_SPOKEN = 20; // entries; they are read out as they come, and the record itself can be read at any time

export class Transcript {
  #list;
  #spoken;
  #empty;
  #items = new Map(); // entry id -> li
  #told = new Set();
  #follows = true;

  constructor(list, spoken, empty) {
    this.#list = list;
    this.#spoken = spoken;
    this.#empty = empty;
    this.#followEnd(list.parentElement);
  }

  #followEnd(scroller) {
    const end = scroller.appendChild(element("div", "end"));
    const options = { root: scroller, rootMargin: `0px 0px ${NEAR_END_PX}px 0px` };
    new IntersectionObserver((seen) => (this.#follows = seen.at(-1).isIntersecting), options).observe(end);
    const growth = new ResizeObserver(() => this.#follows && (scroller.scrollTop = BEYOND_END_PX));
    growth.observe(this.#list);
    growth.observe(scroller);
  }

  clear() {
    this.#list.replaceChildren();
    this.#spoken.replaceChildren();
    this.#items.clear();
    this.#told.clear();
    this.#empty.hidden = false;
  }

  show(entries) {
    if (entries.length === 0) return;
    for (const entry of entries) this.#show(entry);
    this.#empty.hidden = this.#items.size > 0;
  }

  #show(entry) {
    const known = this.#items.get(entry.id);
    if (entry.gone) {
      known?.remove();
      this.#items.delete(entry.id);
      return;
    }
    const item = known ?? this.#list.appendChild(document.createElement("li"));
    this.#items.set(entry.id, item);
    item.className = `entry ${entry.side}`;
    item.dataset.turn = entry.turn ?? "";
    item.dataset.outcome = entry.outcome ?? "";
    item.toggleAttribute("data-settled", entry.settled);
    item.replaceChildren(
      element("span", "who", SIDES[entry.side]),
      element("p", "said", ...(entry.side === "agent" ? agentText(entry) : [entry.text])),
      ...marks(entry),
    );
    if (entry.settled) this.#tell(entry);
  }

  #tell(entry) {
    if (this.#told.has(entry.id)) return;
    this.#told.add(entry.id);
    this.#spoken.append(element("p", "", `${SIDES[entry.side]}: ${entry.text}`));
    if (this.#spoken.childElementCount > MAX_SPOKEN) this.#spoken.firstElementChild.remove();
  }
}

function agentText({ text, heardChars }) {
  const parts = [element("span", "heard", text.slice(0, heardChars)), element("span", "unheard", text.slice(heardChars))];
  return parts.filter((part) => part.textContent !== "");
}

function marks({ side, outcome, latencyMs }) {
  const found = [];
  if (side !== "agent") return found;
  if (latencyMs !== null) found.push(element("span", latencyMs > BUDGET_MS ? "mark late" : "mark", `${Math.round(latencyMs)} ms`));
  if (outcome === "interrupted" || outcome === "failed") found.push(element("span", `mark ${outcome}`, outcome));
  return found.length ? [element("span", "marks", ...found)] : [];
}

export function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}
