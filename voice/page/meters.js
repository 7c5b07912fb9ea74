// Levels of both sides: a bar each, and a tape of the last seconds, on which one sees who spoke when.

const FLOOR_DB = -60; // the left end of a bar
const TAPE_S = 20;
const STEP_S = 0.05; // one column of the tape
const CALM_STEP_S = 0.25; // bars alone, for those who want less motion

export class Meters {
  #context = null;
  #lanes;
  #canvas;
  #isCalm;
  #timer = null;
  #numSteps = 0;

  // `bars`: one for the caller, one for the agent, each with a span that is as long as the level is high.
  constructor(bars, canvas, motion) {
    this.#lanes = bars.map((bar) => ({ bar, analyser: null, samples: null, tape: [] }));
    this.#canvas = canvas;
    this.#isCalm = motion.matches;
    motion.addEventListener("change", () => (this.#isCalm = motion.matches));
    new ResizeObserver(() => this.#draw()).observe(canvas);
  }

  // Within a click: browsers let audio begin only then.
  prepare() {
    this.#context = new AudioContext();
  }

  start(...streams) {
    this.#lanes.forEach((lane, i) => {
      lane.analyser = this.#context.createAnalyser();
      lane.analyser.fftSize = 2048;
      lane.samples = new Float32Array(lane.analyser.fftSize);
      lane.tape = [];
      this.#context.createMediaStreamSource(streams[i]).connect(lane.analyser);
    });
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#step(), 1000 * STEP_S);
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = null;
    void this.#context?.close();
    this.#context = null;
    for (const { bar } of this.#lanes) showLevel(bar, 0);
  }

  redraw() {
    this.#draw();
  }

  #step() {
    const everyNth = this.#isCalm ? Math.round(CALM_STEP_S / STEP_S) : 1;
    this.#numSteps += 1;
    for (const lane of this.#lanes) {
      lane.analyser.getFloatTimeDomainData(lane.samples);
      const level = Math.max(0, 1 - decibels(lane.samples) / FLOOR_DB);
      lane.tape.push(level);
      if (lane.tape.length > TAPE_S / STEP_S) lane.tape.shift();
      if (this.#numSteps % everyNth === 0) showLevel(lane.bar, level);
    }
    if (!this.#isCalm && !document.hidden) this.#draw();
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const ratio = window.devicePixelRatio || 1;
    if (this.#canvas.width !== Math.round(width * ratio)) this.#canvas.width = Math.round(width * ratio);
    if (this.#canvas.height !== Math.round(height * ratio)) this.#canvas.height = Math.round(height * ratio);
    const pen = this.#canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.#canvas);
    const middle = height / 2;
    pen.fillStyle = style.getPropertyValue("--rule");
    pen.fillRect(0, middle - 0.5, width, 1);
    const column = (width * STEP_S) / TAPE_S;
    this.#lanes.forEach(({ tape }, i) => {
      pen.fillStyle = style.getPropertyValue(i === 0 ? "--caller" : "--agent");
      tape.forEach((level, n) => {
        const tall = level * (middle - 3);
        const x = width - (tape.length - n) * column;
        pen.fillRect(x, i === 0 ? middle - 2 - tall : middle + 2, Math.max(1, column - 0.5), tall);
      });
    });
  }
}

// `level`: 0 at the floor, 1 at full scale.
function showLevel(bar, level) {
  bar.firstElementChild.style.width = `${Math.round(100 * level)}%`;
  bar.ariaValueNow = String(Math.round((1 - level) * FLOOR_DB));
}

function decibels(samples) {
  const power = samples.reduce((sum, x) => sum + x * x, 0) / samples.length;
  return 10 * Math.log10(power + 1e-12);
}
