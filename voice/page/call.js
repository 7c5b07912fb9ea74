// One call: microphone, WebRTC, the data channel. Knows nothing of how it is shown.
//
//     asking -> connecting -> live -> ending -> ended
//
// Signalling is WHIP-like (docs/protocol.md): the offer is posted with the candidates found by then, later ones follow.

import { ask, hasKey, isAlive, readError } from "./api.js";
import { PlayClock, bufferDelayS } from "./heard.js";
import { LineWatch } from "./line_watch.js";
import { readIceServers } from "./link.js";
import * as sentences from "./sentences.js";

const PATH = "/v1/calls/rtc";
const GATHERING_MS = 1000; // candidates found later are sent after the offer
const CONNECT_MS = 10_000;
const LOOK_MS = 250; // at packets received
const PLAYED_MS = 100; // between two `played` messages
const HEALTH_MS = 1500; // a dead process refuses at once; this is for a dead machine or network
const FAREWELL_MS = 1000; // for the server to hear of our hanging up
const RAW = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
const CLEANED = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };

const nowS = () => performance.now() / 1000;

// `on`: phase(name), streams(mine, theirs), message(m), heard(sample), line({bufferMs, lossPercent, roundTripMs}),
// notice(text), ended({text, isError, wantsKey}).
export class Call {
  #on;
  #ended = false;
  #microphone = null;
  #peer = null;
  #channel = null;
  #location = null;
  #late = []; // candidates found while there was no location to send them to
  #clock = null;
  #watch = null;
  #delayS = 0;
  #before = null; // statistics of the look before
  #isSilent = false;
  #isLeaving = false;
  #lastPlayed = -1;
  #trouble = null; // what the server complained of last
  #timers = [];

  constructor(on) {
    this.#on = on;
  }

  // `query`: language, voice, greeting. Never rejects for what can go wrong in a call: `ended` tells.
  async start({ headset, query }) {
    this.#on.phase("asking");
    if (!(await this.#openMicrophone(headset))) return;
    this.#on.phase("connecting");
    try {
      const options = await ask(PATH, { method: "OPTIONS" });
      if (this.#ended || (await this.#isRefused(options))) return;
      await this.#connect(readIceServers(options.headers.get("link")), query);
    } catch (error) {
      if (this.#ended) return; // what it closed was still in use
      console.error(error);
      this.#end(error instanceof TypeError || error.name === "TimeoutError" ? sentences.NO_ANSWER : sentences.notSetUp(error));
    }
  }

  // The server tells what it knows of a turn under way, then says bye: that is waited for; not so the second time.
  hangUp() {
    if (this.#isLeaving || this.#channel?.readyState !== "open") return this.leave();
    this.#isLeaving = true;
    this.#on.phase("ending");
    this.#stopMicrophone();
    this.#channel.send(JSON.stringify({ type: "hangup" }));
    this.#later(FAREWELL_MS, () => this.leave());
  }

  // At once.
  leave() {
    this.#isLeaving = true;
    this.#end(sentences.byeSentence("hangup"));
  }

  async #openMicrophone(headset) {
    const devices = navigator.mediaDevices;
    if (!devices?.getUserMedia) {
      this.#end(sentences.microphoneSentence(null, window.isSecureContext));
      return false;
    }
    try {
      this.#microphone = await devices.getUserMedia({ audio: headset ? RAW : CLEANED });
    } catch (error) {
      this.#end(sentences.microphoneSentence(error, window.isSecureContext));
      return false;
    }
    if (this.#ended) this.#stopMicrophone();
    return !this.#ended;
  }

  async #connect(iceServers, query) {
    const peer = (this.#peer = new RTCPeerConnection({ iceServers }));
    const [track] = this.#microphone.getAudioTracks();
    track.onended = () => this.#end(sentences.MICROPHONE_LOST);
    this.#channel = peer.createDataChannel("events");
    this.#channel.onmessage = (event) => this.#receive(JSON.parse(event.data));
    this.#channel.onclose = () => this.#end(this.#trouble ?? sentences.CONNECTION_FAILED);
    peer.addTransceiver(track, { direction: "sendrecv", streams: [this.#microphone] });
    peer.ontrack = ({ track: theirs }) => this.#on.streams(this.#microphone, new MediaStream([theirs]));
    peer.onconnectionstatechange = () => this.#onConnection(peer.connectionState);
    await peer.setLocalDescription();
    await gathered(peer);
    if (this.#ended) return;
    peer.onicecandidate = ({ candidate }) => candidate?.candidate && this.#trickle(candidate);
    const options = { method: "POST", type: "application/sdp", body: peer.localDescription.sdp };
    const response = await ask(`${PATH}?${new URLSearchParams(query)}`, options);
    if (await this.#isRefused(response)) return;
    this.#location = response.headers.get("location");
    if (this.#ended) return void this.#close(); // hung up meanwhile
    for (const candidate of this.#late.splice(0)) this.#trickle(candidate);
    this.#later(CONNECT_MS, () => this.#watch === null && this.#end(sentences.NO_PATH));
    await peer.setRemoteDescription({ type: "answer", sdp: await response.text() });
  }

  async #isRefused(response) {
    if (response.ok) return false;
    if (response.status === 401) {
      this.#end(hasKey() ? sentences.WRONG_KEY : sentences.refusalSentence(401), { wantsKey: true });
      return true;
    }
    const retryAfterS = parseFloat(response.headers.get("retry-after") ?? "");
    this.#end(sentences.refusalSentence(response.status, await readError(response), retryAfterS));
    return true;
  }

  #trickle(candidate) {
    if (this.#location === null) return void this.#late.push(candidate);
    const body = `a=mid:${candidate.sdpMid ?? 0}\r\na=${candidate.candidate}\r\n`;
    const options = { method: "PATCH", type: "application/trickle-ice-sdpfrag", body };
    ask(this.#location, options).catch(() => {}); // one path less; another may do, and if none does, that is said
  }

  #onConnection(state) {
    if (state === "connected" && this.#watch === null) {
      this.#watch = new LineWatch(nowS());
      this.#on.phase("live");
      this.#every(LOOK_MS, () => this.#look());
      this.#every(PLAYED_MS, () => this.#tellPlayed());
    } else if (state === "failed") {
      this.#end(this.#watch === null ? sentences.NO_PATH : sentences.CONNECTION_FAILED);
    }
  }

  #receive(message) {
    if (this.#ended) return;
    if (message.type === "ready") this.#clock = new PlayClock(message.output_sample_rate_hz);
    if (message.type === "position") return this.#clock?.position(message.sample, nowS());
    if (message.type === "clear" || (message.type === "state" && message.state !== "speaking")) this.#clock?.stop();
    this.#on.message(message);
    if (message.type === "error") this.#trouble = sentences.troubleSentence(message);
    if (message.type === "state") this.#trouble = null; // it goes on
    if (message.type !== "bye") return;
    this.#location = null; // gone with the call
    this.#end(sentences.byeSentence(message.reason), { isError: !["hangup", "idle"].includes(message.reason) });
  }

  #tellPlayed() {
    const sample = this.#clock?.heard(nowS(), this.#delayS) ?? null;
    if (sample === null || sample <= this.#lastPlayed || sample < 0) return;
    this.#lastPlayed = sample;
    if (this.#channel.readyState === "open") this.#channel.send(JSON.stringify({ type: "played", sample }));
    this.#on.heard(sample);
  }

  async #look() {
    const report = await this.#peer.getReceivers()[0].getStats();
    if (this.#ended) return;
    const all = [...report.values()];
    const inbound = all.find(({ type }) => type === "inbound-rtp");
    const state = this.#watch.look(nowS(), inbound?.packetsReceived ?? 0);
    if (inbound) {
      this.#delayS = bufferDelayS(this.#before, inbound, this.#delayS);
      this.#before = inbound;
      this.#on.line(lineFigures(inbound, all.find(({ type, nominated }) => type === "candidate-pair" && nominated), this.#delayS));
    }
    if (state === "dead") this.#end(sentences.LINE_GIVEN_UP);
    else if (state === "silent" && !this.#isSilent) await this.#onSilence();
    else if (state === "alive" && this.#isSilent) {
      this.#isSilent = false;
      this.#on.notice(sentences.LINE_BACK);
    }
  }

  async #onSilence() {
    this.#isSilent = true;
    this.#on.notice(sentences.LINE_SILENT);
    const alive = await isAlive(HEALTH_MS);
    if (this.#ended || !this.#isSilent) return;
    if (alive) this.#on.notice(sentences.LINE_WAITING);
    else this.#end(sentences.SERVER_GONE);
  }

  #later(ms, action) {
    this.#timers.push(setTimeout(action, ms));
  }

  #every(ms, action) {
    this.#timers.push(setInterval(action, ms));
  }

  #stopMicrophone() {
    for (const track of this.#microphone?.getTracks() ?? []) {
      track.onended = null;
      track.stop();
    }
  }

  #end(text, { isError = true, wantsKey = false } = {}) {
    if (this.#ended) return;
    this.#ended = true;
    this.#timers.forEach(clearInterval); // ends timeouts as well
    this.#stopMicrophone();
    void this.#close();
    this.#on.ended(this.#isLeaving ? { text: sentences.byeSentence("hangup") } : { text, isError, wantsKey });
  }

  // The server hears of it first, then the connection goes.
  async #close() {
    const [location, peer] = [this.#location, this.#peer];
    this.#location = null;
    if (location !== null) {
      await ask(location, { method: "DELETE", keepalive: true, timeoutMs: FAREWELL_MS }).catch(() => {}); // it is gone
    }
    peer?.close();
  }
}

function gathered(peer) {
  return new Promise((resolve) => {
    const settle = () => peer.iceGatheringState === "complete" && resolve();
    peer.addEventListener("icegatheringstatechange", settle);
    setTimeout(resolve, GATHERING_MS);
    settle();
  });
}

function lineFigures(inbound, pair, delayS) {
  const expected = inbound.packetsReceived + inbound.packetsLost;
  return {
    bufferMs: Math.round(1000 * delayS),
    lossPercent: expected > 0 ? Math.max(0, (100 * inbound.packetsLost) / expected) : 0,
    roundTripMs: pair?.currentRoundTripTime === undefined ? null : Math.round(1000 * pair.currentRoundTripTime),
  };
}
