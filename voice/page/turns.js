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

export function median(values) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export class Turns {
  #all = [];

  add(turn) {
    this.#all.push(turn);
  }

  clear() {
    this.#all = [];
  }

  get measured() {
    return this.#all.filter((turn) => Number.isFinite(turn.latency_ms));
  }

  // The bars, oldest first: one label and, per stage, one length for each turn.
  bars() {
    const shown = this.measured.slice(-NUM_SHOWN);
    return {
      labels: shown.map((turn) => String(turn.turn)),
      stages: STAGES.map(({ key }) => shown.map((turn) => turn.stages_ms[key] ?? 0)),
      scaleMs: Math.max(900, ...shown.map((turn) => 1.05 * turn.latency_ms)),
    };
  }

  // Per stage and for the whole: the last turn, and the median of all.
  rows() {
    const measured = this.measured;
    const last = measured.at(-1) ?? null;
    const rows = STAGES.map((stage) => ({
      ...stage,
      lastMs: last && (last.stages_ms[stage.key] ?? 0),
      medianMs: median(measured.map((turn) => turn.stages_ms[stage.key] ?? 0)),
    }));
    const total = { lastMs: last && last.latency_ms, medianMs: median(measured.map((turn) => turn.latency_ms)) };
    return { rows, total };
  }

  summary() {
    const measured = this.measured;
    if (measured.length === 0) return "No turn has been answered yet.";
    const within = measured.filter((turn) => turn.latency_ms <= BUDGET_MS).length;
    const last = measured.at(-1);
    const turns = measured.length === 1 ? "1 turn" : `${measured.length} turns`;
    return `Turn ${last.turn}: ${Math.round(last.latency_ms)} ms. ${within} of ${turns} within ${BUDGET_MS} ms.`;
  }
}
