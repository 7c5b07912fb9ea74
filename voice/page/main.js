// The page: what is pressed, what is shown. Everything it knows of calls comes from call.js.

import { useKey } from "./api.js";
import { Call } from "./call.js";
import { Meters } from "./meters.js";
import { CallRecord } from "./record.js";
import { NO_KEY, troubleSentence } from "./sentences.js";
import { Status } from "./status.js";
import { Transcript } from "./transcript.js";
import { Turns } from "./turns.js";
import { Waterfall } from "./waterfall.js";

const HEADSET = "offhook-headset";
const QUERY = ["language", "voice", "greeting"]; // of this page's address, handed on to the call
const PHASES = {
  idle: "On hook",
  asking: "Waiting for the microphone",
  connecting: "Connecting",
  live: "Connected",
  ending: "Ending",
};
const STATES = {
  listening: "Listening",
  hearing: "You are speaking",
  thinking: "Thinking",
  speaking: "The agent is speaking",
  closing: "Ending",
};

const $ = (id) => document.getElementById(id);
const motion = window.matchMedia("(prefers-reduced-motion: reduce)");
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const meters = new Meters([$("caller-level"), $("agent-level")], $("tape"), motion);
const transcript = new Transcript($("record"), $("spoken"), $("empty"));
const waterfall = new Waterfall($("waterfall"), $("stages"), $("summary"), motion.matches);
const status = new Status($("processes"), wantKey);
const turns = new Turns();
let record = new CallRecord();
let isOfLastCall = false; // what is shown, while a new call is not there yet
let call = null;
let clock = null;

function press() {
  if (call === null) void begin();
  else call.hangUp();
}

async function begin() {
  say("");
  isOfLastCall = true;
  meters.prepare();
  call = new Call({
    phase: showPhase,
    streams: listen,
    message: receive,
    heard: (sample) => transcript.show(record.heard(sample)),
    line: showLine,
    notice: (text) => say(text, true),
    ended: end,
  });
  const page = new URLSearchParams(location.search);
  const query = Object.fromEntries(QUERY.filter((name) => page.has(name)).map((name) => [name, page.get(name)]));
  await call.start({ headset: $("headset").checked, query: { language: "en", ...query } });
}

// A call that never comes about leaves the one before as it was.
function clearLastCall() {
  if (!isOfLastCall) return;
  isOfLastCall = false;
  record = new CallRecord();
  turns.clear();
  transcript.clear();
  waterfall.show(turns);
}

function receive(message) {
  clearLastCall();
  if (message.type === "ready") {
    $("voice").textContent = `voice ${message.voice}, call ${message.call}`;
    showState("listening", STATES.listening); // with this a call begins; only changes are told
  }
  if (message.type === "state") showState(message.state, STATES[message.state]);
  if (message.type === "error") transcript.show(record.trouble(troubleSentence(message)));
  transcript.show(record.apply(message));
  if (message.type === "turn") {
    turns.add(message);
    waterfall.show(turns);
  }
}

function end({ text, isError, wantsKey }) {
  call = null;
  stopClock();
  meters.stop();
  $("sound").srcObject = null;
  showPhase("idle");
  $("line").textContent = $("voice").textContent = "";
  say(text, isError);
  if (wantsKey) wantKey();
  void status.refresh();
}

function listen(mine, theirs) {
  $("sound").srcObject = theirs;
  meters.start(mine, theirs);
}

function showPhase(phase) {
  showState(phase, PHASES[phase]);
  const button = $("call");
  button.textContent = phase === "idle" ? "Call" : "Hang up";
  button.classList.toggle("engaged", phase !== "idle");
  $("headset").disabled = phase !== "idle";
  if (phase === "live") {
    clearLastCall();
    startClock();
  }
}

function showState(name, words) {
  document.body.dataset.state = name;
  $("state").textContent = words;
}

function showLine({ bufferMs, lossPercent, roundTripMs }) {
  const trip = roundTripMs === null ? "" : `, round trip ${roundTripMs} ms`;
  $("line").textContent = `buffer ${bufferMs} ms, loss ${lossPercent.toFixed(1)} %${trip}`;
}

function say(text, isError = false) {
  const notice = $("notice");
  notice.textContent = text;
  notice.hidden = text === "";
  notice.classList.toggle("error", isError);
}

function startClock() {
  const startedMs = performance.now();
  const show = () => {
    const seconds = Math.floor((performance.now() - startedMs) / 1000);
    $("clock").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  };
  show();
  clock = setInterval(show, 1000);
}

function stopClock() {
  clearInterval(clock);
  clock = null;
}

function wantKey() {
  $("key-form").hidden = false;
}

$("call").addEventListener("click", press);
$("headset").checked = localStorage.getItem(HEADSET) === "yes";
$("headset").addEventListener("change", () => localStorage.setItem(HEADSET, $("headset").checked ? "yes" : "no"));
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const isKey = useKey($("key").value);
  $("key").value = "";
  $("key-form").hidden = isKey;
  say(isKey ? "" : NO_KEY, !isKey);
  void status.refresh();
});
window.addEventListener("pagehide", () => call?.leave());
dark.addEventListener("change", () => {
  waterfall.recolour();
  meters.redraw();
});
showPhase("idle");
waterfall.show(turns);
void status.refresh();
