// The last turns as bars against the budget, and the last one in figures. Chart.js is loaded before this as a script.

import { BUDGET_MS, STAGES, axisFor } from "./turns.js";
import { element } from "./transcript.js";

const BAR_PX = 18;

export class Waterfall {
  #chart;
  #canvas;
  #body;
  #summary;
  #scaleMs = 900;

  constructor(canvas, body, summary, isCalm) {
    this.#canvas = canvas;
    this.#body = body;
    this.#summary = summary;
    this.#chart = new globalThis.Chart(canvas, {
      type: "bar",
      data: { labels: [], datasets: STAGES.map(({ label }) => ({ label, data: [], maxBarThickness: BAR_PX })) },
      options: {
        indexAxis: "y",
        responsive: true,
        maintainAspectRatio: false,
        animation: isCalm ? false : { duration: 200 },
        layout: { padding: { top: 20 } },
        onResize: (chart, { width }) => this.#fit(chart, width),
        scales: { x: { stacked: true, min: 0, max: 900, ticks: { autoSkip: false, callback: String, maxRotation: 0 } }, y: { stacked: true } },
        plugins: { legend: { display: false }, tooltip: { callbacks: { title: ([item]) => `Turn ${item.label}`, label: tip } } },
      },
      plugins: [{ id: "budget", afterDatasetsDraw: (chart) => drawBudget(chart, canvas) }],
    });
    this.recolour();
  }

  show(turns) {
    const { labels, stages, scaleMs } = turns.bars();
    this.#chart.data.labels = labels;
    this.#chart.data.datasets.forEach((dataset, i) => (dataset.data = stages[i]));
    this.#scaleMs = scaleMs;
    this.#fit(this.#chart, this.#chart.width);
    this.#chart.update();
    this.#summary.textContent = turns.summary();
    this.#canvas.setAttribute("aria-label", `Turn waterfall. ${turns.summary()}`);
    this.#fill(turns.rows());
  }

  recolour() {
    const style = getComputedStyle(this.#canvas);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.#chart.data.datasets.forEach((dataset, i) => (dataset.backgroundColor = colour(`--stage-${i}`)));
    for (const axis of Object.values(this.#chart.options.scales)) {
      axis.ticks.color = colour("--dim");
      axis.ticks.font = { size: 11 };
      axis.border = { color: colour("--rule") };
    }
    this.#chart.options.scales.x.grid = { color: colour("--rule") };
    this.#chart.options.scales.y.grid = { display: false };
    this.#chart.update("none");
  }

  #fit(chart, widthPx) {
    const { stepMs, maxMs } = axisFor(this.#scaleMs, widthPx);
    chart.options.scales.x.max = maxMs;
    chart.options.scales.x.ticks.stepSize = stepMs;
  }

  #fill({ rows, total }) {
    const stages = rows.map(({ label, lastMs, medianMs, shareMs }, i) => {
      const name = element("th", `stage stage-${i}`, label);
      name.scope = "row";
      const share = shareMs === null ? [] : [element("td", "share", String(shareMs))];
      if (STAGES[i + 1]?.shareMs === null) share[0].rowSpan = 2;
      return element("tr", "", name, cell(lastMs), cell(medianMs), ...share);
    });
    const name = element("th", "", "Turn");
    name.scope = "row";
    const whole = element("tr", "total", name, cell(total.lastMs), cell(total.medianMs), cell(BUDGET_MS));
    whole.classList.toggle("late", total.lastMs > BUDGET_MS);
    this.#body.replaceChildren(...stages, whole);
  }
}

function cell(ms) {
  return element("td", "", ms === null ? "–" : ms.toFixed(0));
}

function tip({ dataset, raw }) {
  return `${dataset.label}: ${raw.toFixed(0)} ms`;
}

function drawBudget(chart, canvas) {
  const { ctx: pen, chartArea: area, scales } = chart;
  const x = scales.x.getPixelForValue(BUDGET_MS);
  const colour = getComputedStyle(canvas).getPropertyValue("--late").trim();
  pen.save();
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x, area.top - 4);
  pen.lineTo(x, area.bottom);
  pen.stroke();
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.fillText(`${BUDGET_MS} ms`, x, area.top - 7);
  pen.restore();
}
