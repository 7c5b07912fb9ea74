// What went wrong, in a sentence that says what to do about it. No DOM.

export function durationInWords(seconds) {
  const whole = Math.max(1, Math.ceil(seconds));
  if (whole < 120) return whole === 1 ? "1 second" : `${whole} seconds`;
  return `${Math.ceil(whole / 60)} minutes`;
}

// `error` is what getUserMedia threw; null where the page has no getUserMedia at all.
export function microphoneSentence(error, isSecure) {
  if (error === null) {
    return isSecure
      ? "This browser gives web pages no microphone. Try another browser."
      : "Browsers give a page the microphone only over https, or from this machine itself: open http://127.0.0.1 with this page's port.";
  }
  switch (error.name) {
    case "NotFoundError":
    case "DevicesNotFoundError":
      return "No microphone was found. Plug one in, then press Call again.";
    case "NotAllowedError":
    case "SecurityError":
      return "The microphone is blocked. Allow it for this page (the icon beside the address), then press Call again.";
    case "NotReadableError":
    case "AbortError":
      return "The microphone cannot be opened; another program may hold it. Close that, then press Call again.";
    default:
      return `The microphone cannot be used: ${error.message || error.name}.`;
  }
}

// Why an offer was not answered: HTTP status, `error` of the body, Retry-After.
export function refusalSentence(status, error, retryAfterS) {
  if (status === 429) {
    const when = Number.isFinite(retryAfterS) ? ` Try again in about ${durationInWords(retryAfterS)}.` : " Try again soon.";
    return `All lines are busy.${when}`;
  }
  if (status === 401) return "This call server wants its API key. Enter it below, then press Call again.";
  if (status === 503) return "The call server is shutting down and takes no new calls. Try again in a moment.";
  const why = error?.message ?? `HTTP status ${status}`;
  return `The call server refused the call: ${why}.`;
}

export const WRONG_KEY = "That API key is wrong. Enter the right one below, then press Call again.";
export const NO_KEY = "That API key is wrong: a key has plain letters, digits and signs only. Copy it again, and enter it below.";
export const NO_ANSWER = "The call server does not answer. Is it running?";
export const NO_PATH =
  "No media path was found within 10 seconds. Something between this browser and the call server drops UDP; " +
  "a TURN server in the profile (voice.webrtc.ice_servers) goes around it.";
export const notSetUp = (error) => `The call could not be set up: ${error.message || error.name}.`;
export const LINE_SILENT = "The line is dead: nothing has come for a second. Asking the call server\u2026";
export const LINE_WAITING = "The line is dead, but the call server is alive. Waiting for it to come back\u2026";
export const LINE_BACK = "The line is back.";
export const LINE_GIVEN_UP = "The line stayed dead, so the call was ended. Press Call to try again.";
export const SERVER_GONE = "The call server is gone; the call is over. Press Call once it runs again.";
export const MICROPHONE_LOST = "The microphone was unplugged, so the call was ended.";
export const CONNECTION_FAILED = "The connection to the call server was lost. Press Call to try again.";

export function byeSentence(reason) {
  switch (reason) {
    case "hangup":
      return "The call has ended.";
    case "idle":
      return "The call was ended because nobody spoke.";
    case "max_length":
      return "The call has reached its greatest length and was ended.";
    case "drain":
      return "The call server is shutting down and ended the call.";
    default:
      return "The call server failed and ended the call. Its log says why.";
  }
}

// An `error` message within the call, which goes on unless the connection ends.
export function troubleSentence({ code, message, retry_after_ms: retryAfterMs }) {
  const when = retryAfterMs ? ` Try again in about ${durationInWords(retryAfterMs / 1000)}.` : "";
  return explain(code, message) + when;
}

function explain(code, message) {
  switch (code) {
    case "delayed":
      return "The answer takes longer than it should.";
    case "unavailable":
      return `A service is out of reach: ${message}.`;
    case "deadline_exceeded":
      return `The answer was not ready in time: ${message}.`;
    case "speech_failed":
      return `The agent's speech broke off: ${message}.`;
    case "overloaded":
      return `A service is overloaded: ${message}.`;
    default:
      return `${message} (${code}).`;
  }
}
