// The record of a call: who said what, and how much of the agent's words was heard. No DOM.
//
// Fed with the messages of `wire/calls.py`. An agent's entry is an answer (its text comes as `reply`, its words later)
// or something the agent says by itself: a greeting, a filler while the answer is not ready (only its words are told).
// One is open at a time: the one that text and words belong to. One before it may still sound.

import { isHeard } from "./heard.js";

export class CallRecord {
  entries = [];
  #sounding = new Set(); // entries of the agent that are not settled
  #callers = new Map(); // turn -> entry
  #open = null;
  #nextId = 1;

  // The entries that have changed or are new.
  apply(message) {
    switch (message.type) {
      case "partial":
        return [this.#callerSays(message, false)];
      case "final":
        return [this.#callerSays(message, true)];
      case "reply":
        return [this.#reply(message)];
      case "words":
        return [this.#words(message)];
      case "clear":
        return this.#settle((entry) => (entry.outcome ??= "interrupted"));
      case "state":
        return this.#state(message);
      case "turn":
        return this.#turn(message);
      default:
        return [];
    }
  }

  // The agent's audio has been heard up to `sample`.
  heard(sample) {
    return [...this.#sounding].filter((entry) => {
      const before = entry.heardChars;
      for (const word of entry.words) {
        if (isHeard(word, sample)) entry.heardChars = Math.max(entry.heardChars, word.endChar);
      }
      return entry.heardChars !== before;
    });
  }

  trouble(text) {
    return [this.#add({ side: "note", turn: null, text, settled: true })];
  }

  #add(entry) {
    const added = { id: this.#nextId++, ...entry };
    this.entries.push(added);
    return added;
  }

  #callerSays({ turn, text }, settled) {
    if (!this.#callers.has(turn)) this.#callers.set(turn, this.#add({ side: "caller", turn, text, settled }));
    return Object.assign(this.#callers.get(turn), { text, settled });
  }

  #agentEntry(turn, kind) {
    if (this.#open === null || this.#open.turn !== turn || (kind === "answer" && this.#open.kind !== kind)) {
      const empty = { text: "", words: [], heardChars: 0, settled: false, outcome: null, latencyMs: null };
      this.#open = this.#add({ side: "agent", turn, kind, ...empty });
      this.#sounding.add(this.#open);
    }
    return this.#open;
  }

  #reply({ turn, delta }) {
    const entry = this.#agentEntry(turn, "answer");
    entry.text += delta;
    return entry;
  }

  #words({ turn, words }) {
    const entry = this.#agentEntry(turn, "prompt");
    for (const { text, start_sample: startSample, end_sample: endSample } of words) {
      if (entry.kind === "prompt") entry.text += entry.text === "" ? text : ` ${text}`;
      const from = entry.words.at(-1)?.endChar ?? 0;
      const start = entry.text.indexOf(text, from);
      const endChar = start < 0 ? from : start + text.length;
      entry.words.push({ startSample, endSample, endChar });
    }
    return entry;
  }

  #state({ state, turn }) {
    if (state === "listening") return this.#settle((entry) => (entry.heardChars = entry.text.length));
    if (state === "hearing" && this.#open?.turn === turn && this.#open.kind === "answer") return this.#withdraw();
    return [];
  }

  // The turn goes on before its answer was heard: that answer never was.
  #withdraw() {
    const entry = this.#open;
    this.#open = null;
    this.#sounding.delete(entry);
    return [this.#remove(entry)];
  }

  #remove(entry) {
    this.entries.splice(this.entries.lastIndexOf(entry), 1);
    return { ...entry, gone: true };
  }

  #settle(change) {
    this.#open = null;
    const settled = [...this.#sounding];
    this.#sounding.clear();
    for (const entry of settled) {
      entry.settled = true;
      change(entry);
    }
    return settled;
  }

  #turn({ turn, outcome, text, heard, latency_ms: latencyMs }) {
    const changed = [];
    const caller = this.#callers.get(turn);
    if (caller !== undefined && text === "" && outcome === "empty") {
      this.#callers.delete(turn);
      changed.push(this.#remove(caller));
    } else if (caller !== undefined) {
      changed.push(Object.assign(caller, { text: text || caller.text, settled: true }));
    }
    const answer = this.#open?.turn === turn && this.#open.kind === "answer" ? this.#open : null;
    if (answer !== null) {
      this.#open = null;
      this.#sounding.delete(answer);
      const heardChars = lengthOfHeard(answer.text, heard);
      changed.push(Object.assign(answer, { heardChars, outcome, latencyMs: latencyMs ?? null, settled: true }));
    }
    return changed;
  }
}

// `heard` is a beginning of `text`, but for space around it.
function lengthOfHeard(text, heard) {
  const start = text.length - text.trimStart().length;
  return text.startsWith(heard.trim(), start) ? start + heard.trim().length : 0;
}
