// What of the agent's audio has been heard, on the agent's own sample clock. No DOM.
//
// A `position` message leaves the server together with the packet that begins with its sample, and comes at least
// every 100 ms while the agent speaks. The packet sounds after it has passed the jitter buffer. Between two positions
// the clock runs on by itself, but no further than the next one would have been.

const POSITION_S = 0.12; // between two positions: 100 ms, rounded up to whole packets

export class PlayClock {
  #rateHz;
  #sample = null; // of the last position; null while the agent is silent
  #atS = 0;
  #heard = 0;

  constructor(rateHz) {
    this.#rateHz = rateHz;
  }

  position(sample, nowS) {
    this.#sample = sample;
    this.#atS = nowS;
  }

  // After `clear`, or at the end of speech: stands until the next position.
  stop() {
    this.#sample = null;
  }

  // The sample that sounds now, null while the agent is silent. Never goes back.
  heard(nowS, delayS) {
    if (this.#sample === null) return null;
    const sinceS = Math.min(nowS - this.#atS - delayS, POSITION_S);
    this.#heard = Math.max(this.#heard, Math.floor(this.#sample + sinceS * this.#rateHz));
    return this.#heard;
  }
}

// A word counts as heard once more than half of it was: the server's rule (voice/playout.py).
export function isHeard(word, sample) {
  return sample > (word.startSample + word.endSample) / 2;
}

// Mean delay in the jitter buffer between two readings of an inbound stream's statistics, else `otherwiseS`.
export function bufferDelayS(before, after, otherwiseS) {
  const emitted = after.jitterBufferEmittedCount - (before?.jitterBufferEmittedCount ?? 0);
  const delayS = after.jitterBufferDelay - (before?.jitterBufferDelay ?? 0);
  return emitted > 0 && delayS >= 0 ? delayS / emitted : otherwiseS;
}
