// The record of a call, fed with the messages of wire/calls.py.

import assert from "node:assert/strict";
import { test } from "node:test";

import { CallRecord } from "../../../voice/page/record.js";

const words = (turn, ...list) => ({
  type: "words",
  turn,
  words: list.map((text, i) => ({ text, start_sample: 1000 * i, end_sample: 1000 * (i + 1) })),
});
const state = (name, turn) => ({ type: "state", state: name, turn });

function recordOf(...messages) {
  const record = new CallRecord();
  for (const message of messages) record.apply(message);
  return record;
}

function answered() {
  return recordOf(
    { type: "partial", turn: 1, revision: 1, text: "What" },
    { type: "final", turn: 1, text: "What time is it?" },
    { type: "reply", turn: 1, delta: "It is nine, " },
    words(1, "It", "is", "nine"),
    { type: "reply", turn: 1, delta: "and we open." },
  );
}

test("partials are replaced by what the caller said", () => {
  const [caller] = answered().entries;
  assert.deepEqual([caller.side, caller.text, caller.settled], ["caller", "What time is it?", true]);
});

test("words are marked as the agent's samples pass", () => {
  const record = answered();
  record.heard(1400);
  assert.equal(record.entries[1].heardChars, "It".length);
  record.heard(1501);
  assert.equal(record.entries[1].heardChars, "It is".length);
  assert.deepEqual(record.heard(1600), []);
});

test("at the end of a turn the server's word on what was heard counts", () => {
  const record = answered();
  record.heard(3000);
  record.apply({ type: "turn", turn: 1, outcome: "interrupted", text: "What time is it?", heard: "It is", latency_ms: 480.2 });
  const entry = record.entries[1];
  assert.deepEqual([entry.heardChars, entry.outcome, entry.latencyMs, entry.settled], [5, "interrupted", 480.2, true]);
});

test("what comes after the end of a turn marks nothing in it", () => {
  const record = answered();
  record.apply({ type: "turn", turn: 1, outcome: "interrupted", text: "x", heard: "It is", latency_ms: 1 });
  assert.deepEqual(record.heard(9000), []);
  assert.equal(record.entries[1].heardChars, 5);
});

test("what the agent says by itself is told by its words alone", () => {
  const record = recordOf(words(0, "Hello,", "you", "are"));
  record.apply({ type: "words", turn: 0, words: [{ text: "through.", start_sample: 3000, end_sample: 4000 }] });
  assert.equal(record.entries[0].text, "Hello, you are through.");
  record.heard(1600);
  assert.equal(record.entries[0].heardChars, "Hello, you".length);
  record.apply(state("listening", 0));
  assert.equal(record.entries[0].heardChars, record.entries[0].text.length);
});

test("an interrupted greeting keeps its marks", () => {
  const record = recordOf(words(0, "Hello,", "you"));
  record.heard(600);
  record.apply({ type: "clear", turn: 0, sample: 700 });
  assert.deepEqual([record.entries[0].outcome, record.entries[0].heardChars], ["interrupted", "Hello,".length]);
});

test("an answer that nobody heard is withdrawn when the turn goes on", () => {
  const record = answered();
  const [gone] = record.apply(state("hearing", 1));
  assert.equal(gone.gone, true);
  record.apply({ type: "partial", turn: 1, revision: 9, text: "What time is it in" });
  assert.equal(record.entries.length, 1);
  assert.equal(record.entries[0].settled, false);
  record.apply({ type: "reply", turn: 1, delta: "Ten." });
  assert.equal(record.entries[1].text, "Ten.");
});

test("noise leaves no entry", () => {
  const record = recordOf({ type: "partial", turn: 1, revision: 1, text: "" });
  const [gone] = record.apply({ type: "turn", turn: 1, outcome: "empty", text: "", heard: "" });
  assert.equal(gone.gone, true);
  assert.deepEqual(record.entries, []);
});

test("an apology after a failed answer is an entry of its own", () => {
  const record = answered();
  record.apply({ type: "turn", turn: 1, outcome: "failed", text: "What time is it?", heard: "" });
  record.apply(words(1, "Sorry,"));
  assert.deepEqual(record.entries.map(({ text }) => text), ["What time is it?", "It is nine, and we open.", "Sorry,"]);
  assert.equal(record.entries[1].heardChars, 0);
});

test("a prompt after an answered turn does not join its answer", () => {
  const record = answered();
  record.apply({ type: "turn", turn: 1, outcome: "answered", text: "x", heard: "It is nine, and we open.", latency_ms: 5 });
  record.apply(state("listening", 1));
  record.apply(words(1, "Are", "you", "still", "there?"));
  assert.equal(record.entries[2].text, "Are you still there?");
});

test("heard text that is no beginning of the answer marks nothing", () => {
  const record = answered();
  record.apply({ type: "turn", turn: 1, outcome: "failed", text: "x", heard: "something else", latency_ms: 5 });
  assert.equal(record.entries[1].heardChars, 0);
});

test("a filler that still sounds when the answer is written keeps its marks", () => {
  const record = recordOf({ type: "final", turn: 1, text: "What?" }, words(1, "One", "moment."));
  record.apply({ type: "reply", turn: 1, delta: "It is nine." });
  record.heard(600);
  assert.deepEqual(record.entries.map(({ text, heardChars }) => [text, heardChars]), [
    ["What?", undefined],
    ["One moment.", "One".length],
    ["It is nine.", 0],
  ]);
  record.apply(state("listening", 1));
  assert.equal(record.entries[1].heardChars, "One moment.".length);
});
