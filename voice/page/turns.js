// Turns as figures: where the time between the caller's last word and the answer went. No DOM.

export const BUDGET_MS = 700;
export const NUM_SHOWN = 6;

// Stages in the order in which they end (voice/budget.py), with the share of the budget that each has.
export const STAGES = [
  { key: "endpointing", label: "End of turn", shareMs: 250 },
  { key: "stt", label: "Recognition", shareMs: 80 },
  { key: "llm_first_token", label: "First token", shareMs: 180 }, // shared with the first clause
  { key: "llm_first_clause", label: "First clause", shareMs: null },
  { key: "tts", label: "Speech", shareMs: 140 },
  { key: "playout", label: "Playout", shareMs: 50 },
];

const STEPS_MS = [100, 200, 500, 1000, 2000, 5000];
const TICK_PX = 38; // a label of four digits, and space around it

// The time axis ends with a tick, and its labels do not touch.
export function axisFor(scaleMs, widthPx) {
  const stepMs = STEPS_MS.find((step) => Math.ceil(scaleMs / step) * TICK_PX <= widthPx) ?? STEPS_MS.at(-1);
  return { stepMs, maxMs: Math.ceil(scaleMs / stepMs) * stepMs };
}

// Values one by one, and the median of all: they are kept in order, so that none is sorted again.
class Median {
  #sorted = [];

  add(value) {
    let [from, to] = [0, this.#sorted.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#sorted[middle] < value) from = middle + 1;
      else to = middle;
    }
    this.#sorted.splice(from, 0, value);
  }

  get value() {
    const { length } = this.#sorted;
    if (length === 0) return null;
    const middle = length >> 1;
    return length % 2 ? this.#sorted[middle] : (this.#sorted[middle - 1] + this.#sorted[middle]) / 2;
  }
}

export class Turns {
  #shown; // the last turns with an answer, oldest first
  #num;
  #numWithin;
  #stages;
  #whole;

  constructor() {
    this.clear();
  }

  clear() {
    this.#shown = [];
    this.#num = this.#numWithin = 0;
    this.#stages = STAGES.map(() => new Median());
    this.#whole = new Median();
  }

  // Turns without an answer count for nothing.
  add(turn) {
    if (!Number.isFinite(turn.latency_ms)) return;
    this.#shown = [...this.#shown.slice(1 - NUM_SHOWN), turn];
    this.#num += 1;
    this.#numWithin += turn.latency_ms <= BUDGET_MS ? 1 : 0;
    STAGES.forEach(({ key }, i) => this.#stages[i].add(turn.stages_ms[key] ?? 0));
    this.#whole.add(turn.latency_ms);
  }

  // The bars, oldest first: one label and, per stage, one length for each turn.
  bars() {
    return {
      labels: this.#shown.map((turn) => String(turn.turn)),
      stages: STAGES.map(({ key }) => this.#shown.map((turn) => turn.stages_ms[key] ?? 0)),
      scaleMs: Math.max(900, ...this.#shown.map((turn) => 1.05 * turn.latency_ms)),
    };
  }

  // Per stage and for the whole: the last turn, and the median of all.
  rows() {
    const last = this.#shown.at(-1) ?? null;
    const rows = STAGES.map((stage, i) => ({
      ...stage,
      lastMs: last && (last.stages_ms[stage.key] ?? 0),
      medianMs: this.#stages[i].value,
    }));
    return { rows, total: { lastMs: last && last.latency_ms, medianMs: this.#whole.value } };
  }

  summary() {
    if (this.#num === 0) return "No turn has been answered yet.";
    const last = this.#shown.at(-1);
    const turns = this.#num === 1 ? "1 turn" : `${this.#num} turns`;
    return `Turn ${last.turn}: ${Math.round(last.latency_ms)} ms. ${this.#numWithin} of ${turns} within ${BUDGET_MS} ms.`;
  }
}
