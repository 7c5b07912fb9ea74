// The modules of the console page that have no DOM, by `node --test`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { PlayClock, bufferDelayS, isHeard } from "../../../voice/page/heard.js";
import { LineWatch } from "../../../voice/page/line_watch.js";
import { readIceServers } from "../../../voice/page/link.js";
import { durationInWords, microphoneSentence, refusalSentence, troubleSentence } from "../../../voice/page/sentences.js";
import { NUM_SHOWN, Turns, axisFor } from "../../../voice/page/turns.js";

test("what sounds now lags the position by the jitter buffer", () => {
  const clock = new PlayClock(48000);
  clock.position(96000, 10);
  assert.equal(clock.heard(10.09, 0.04), 96000 + 0.05 * 48000 - 1 + 1);
});

test("the clock never goes back and never runs beyond the next position", () => {
  const clock = new PlayClock(48000);
  clock.position(48000, 1);
  const farthest = clock.heard(9, 0);
  assert.equal(farthest, 48000 + 0.12 * 48000);
  clock.position(48500, 9);
  assert.equal(clock.heard(9, 0.1), farthest);
});

test("nothing is heard before the first position or after a stop", () => {
  const clock = new PlayClock(48000);
  assert.equal(clock.heard(1, 0), null);
  clock.position(0, 1);
  clock.stop();
  assert.equal(clock.heard(2, 0), null);
});

test("a word counts once more than half of it was heard", () => {
  const word = { startSample: 100, endSample: 200 };
  assert.equal(isHeard(word, 150), false);
  assert.equal(isHeard(word, 151), true);
});

test("the buffer's delay is the mean since the last look, and stays where nothing was emitted", () => {
  const before = { jitterBufferDelay: 10, jitterBufferEmittedCount: 1000 };
  assert.equal(bufferDelayS(before, { jitterBufferDelay: 14, jitterBufferEmittedCount: 1100 }, 0), 0.04);
  assert.equal(bufferDelayS(before, before, 0.02), 0.02);
  assert.equal(bufferDelayS(null, { jitterBufferDelay: 2, jitterBufferEmittedCount: 100 }, 0), 0.02);
});

test("a line is silent a second after its last packet, and dead after six", () => {
  const watch = new LineWatch(0);
  let packets = 0;
  for (let s = 0.25; s <= 2; s += 0.25) assert.equal(watch.look(s, (packets += 12)), "alive");
  const states = [];
  for (let s = 2.25; s <= 8.25; s += 0.25) states.push([s, watch.look(s, packets)]);
  assert.equal(states.find(([, state]) => state === "silent")[0], 3);
  assert.equal(states.find(([, state]) => state === "dead")[0], 8);
  assert.equal(watch.look(8.5, packets + 1), "alive");
});

test("silence is told within 1.5 s of the last packet wherever the looks fall", () => {
  for (let phase = 0; phase < 0.25; phase += 0.01) {
    const watch = new LineWatch(0);
    let s = phase;
    while (watch.look(s, Math.floor(Math.min(s, 3) / 0.02)) === "alive") s += 0.25;
    assert.ok(s - 3 >= 0.8 && s - 3 <= 1.4, `${s - 3}`);
  }
});

test("ICE servers are read out of Link headers, with their passwords", () => {
  const header =
    '<stun:stun.example.net:3478>; rel="ice-server", </v1/calls>; rel=self, ' +
    '<turn:turn.example.net:3478?transport=udp>; rel="ice-server"; username="a, b"; credential="x\\"y;z"; credential-type="password"';
  assert.deepEqual(readIceServers(header), [
    { urls: "stun:stun.example.net:3478" },
    { urls: "turn:turn.example.net:3478?transport=udp", username: "a, b", credential: 'x"y;z' },
  ]);
});

test("no header, or none that makes sense, names no server", () => {
  for (const header of [null, "", "nonsense", "<javascript:alert(1)>; rel=ice-server", "<stun:a", ";;;,,,"]) {
    assert.deepEqual(readIceServers(header), []);
  }
});

test("when to come back is said in words", () => {
  assert.equal(refusalSentence(429, null, 30), "All lines are busy. Try again in about 30 seconds.");
  assert.equal(refusalSentence(429, null, NaN), "All lines are busy. Try again soon.");
  assert.deepEqual([0.2, 1, 119, 120, 150].map(durationInWords), ["1 second", "1 second", "119 seconds", "2 minutes", "3 minutes"]);
});

test("a refusal within the connection says when to come back", () => {
  const message = { code: "unavailable", message: "no voice", retry_after_ms: 5000 };
  assert.equal(troubleSentence(message), "A service is out of reach: no voice. Try again in about 5 seconds.");
});

test("every trouble with the microphone says what to do", () => {
  assert.match(microphoneSentence({ name: "NotFoundError" }, true), /No microphone was found/);
  assert.match(microphoneSentence({ name: "NotAllowedError" }, true), /blocked/);
  assert.match(microphoneSentence({ name: "NotReadableError" }, true), /another program/);
  assert.match(microphoneSentence(null, false), /https/);
});

const turn = (number, latencyMs, stages = {}) => ({ turn: number, latency_ms: latencyMs, stages_ms: stages });

test("turns without an answer have no bar", () => {
  const turns = new Turns();
  turns.add(turn(1, 400, { endpointing: 250, stt: 150 }));
  turns.add(turn(2, undefined));
  turns.add(turn(3, 800, { endpointing: 800 }));
  assert.deepEqual(turns.bars().labels, ["1", "3"]);
  assert.deepEqual(turns.bars().stages[0], [250, 800]);
  assert.equal(turns.summary(), "Turn 3: 800 ms. 1 of 2 turns within 700 ms.");
  assert.deepEqual(turns.rows().total, { lastMs: 800, medianMs: 600 });
});

test("the time axis ends with a tick, and narrow ones have fewer", () => {
  assert.deepEqual(axisFor(900, 380), { stepMs: 100, maxMs: 900 });
  assert.deepEqual(axisFor(900, 260), { stepMs: 200, maxMs: 1000 });
  assert.deepEqual(axisFor(1290, 380), { stepMs: 200, maxMs: 1400 });
  for (let scaleMs = 900; scaleMs < 20_000; scaleMs += 37) {
    for (const widthPx of [0, 200, 300, 440, 900]) {
      const { stepMs, maxMs } = axisFor(scaleMs, widthPx);
      assert.ok(maxMs % stepMs === 0 && maxMs >= scaleMs && maxMs < scaleMs + stepMs, `${scaleMs} ${widthPx}`);
    }
  }
});

test("figures taken up one by one are those of all turns at once", () => {
  const turns = new Turns();
  const latencies = [];
  for (let i = 1; i <= 40; i += 1) {
    latencies.push((i * 7919) % 1400);
    turns.add(turn(i, latencies.at(-1), { tts: latencies.at(-1) / 2 }));
    const sorted = [...latencies].sort((a, b) => a - b);
    const medianMs = (sorted[(i - 1) >> 1] + sorted[i >> 1]) / 2;
    const { rows, total } = turns.rows();
    assert.deepEqual(total, { lastMs: latencies.at(-1), medianMs });
    assert.equal(rows.find(({ key }) => key === "tts").medianMs, medianMs / 2);
    assert.deepEqual(turns.bars().labels, latencies.map((_, j) => String(j + 1)).slice(-NUM_SHOWN));
    const within = latencies.filter((ms) => ms <= 700).length;
    assert.match(turns.summary(), new RegExp(`^Turn ${i}: .* ${within} of ${i === 1 ? "1 turn" : `${i} turns`} within`));
  }
  turns.clear();
  assert.equal(turns.summary(), new Turns().summary());
});

test("before the first answer there is nothing to say", () => {
  const turns = new Turns();
  assert.deepEqual(turns.bars().labels, []);
  assert.deepEqual(turns.rows().total, { lastMs: null, medianMs: null });
});
