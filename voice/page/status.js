// The state of every process, asked every two seconds while the page is seen, every second while something is down.

import { ask } from "./api.js";
import { element } from "./transcript.js";

const PATH = "/v1/status";
const CALM_MS = 2000;
const ALERT_MS = 1000;
const TIMEOUT_MS = 3000; // the server waits one second for each service, all at once
const NAMES = { voice: "Call server", stt: "Recognition", tts_engine: "Voice engine", router: "LLM router", llm: "LLM worker" };
const UNKNOWN = "unknown";

export class Status {
  #list;
  #onKeyWanted;
  #timer = null;
  #round = 0;
  #known = [];

  constructor(list, onKeyWanted) {
    this.#list = list;
    this.#onKeyWanted = onKeyWanted;
    document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(this.#timer) : this.refresh()));
  }

  async refresh() {
    clearTimeout(this.#timer);
    const round = (this.#round += 1);
    const answer = await this.#ask();
    if (round !== this.#round) return; // a later question, perhaps with another key, is under way
    if (answer.wantsKey) this.#onKeyWanted();
    this.#show(answer.processes);
    const isWell = answer.processes.every(({ status }) => status === "ready" || status === "draining");
    if (!document.hidden) this.#timer = setTimeout(() => this.refresh(), isWell ? CALM_MS : ALERT_MS);
  }

  async #ask() {
    try {
      const response = await ask(PATH, { timeoutMs: TIMEOUT_MS });
      if (response.ok) return await response.json();
      const wantsKey = response.status === 401;
      const detail = wantsKey ? "wants its API key" : `answers ${response.status}`;
      return { wantsKey, processes: this.#others({ name: "voice", status: wantsKey ? UNKNOWN : "failed", detail }) };
    } catch {
      return { processes: this.#others({ name: "voice", status: "down", detail: "does not answer" }) };
    }
  }

  // When the call server cannot say: nothing is known of those it knows.
  #others(voice) {
    const others = this.#known.filter(({ name }) => name !== "voice");
    return [voice, ...others.map(({ name }) => ({ name, status: UNKNOWN, detail: "" }))];
  }

  #show(processes) {
    this.#known = processes;
    this.#list.replaceChildren(...processes.map(row));
  }
}

function row({ name, status, active = null, uptime_s: uptimeS = null, detail }) {
  const who = element("th", `process ${status}`, NAMES[name] ?? name);
  who.scope = "row";
  const made = element(
    "tr",
    "",
    who,
    element("td", `condition ${status}`, status),
    element("td", "detail", detail),
    element("td", "number", active === null ? "–" : String(active)),
    element("td", "number", uptimeS === null ? "–" : span(uptimeS)),
  );
  made.dataset.name = name;
  made.querySelector(".detail").title = detail;
  return made;
}

function span(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}
