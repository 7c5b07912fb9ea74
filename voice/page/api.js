// The call server over HTTP. The API key, where one is set, lives as long as this tab.

const KEY_NAME = "offhook-api-key";

// A key travels in a header, which takes printable ASCII; `fetch` throws for anything else.
export const isKey = (text) => /^[ -~]+$/.test(text);

// False for what no key can be; then no key is kept, since the one before was wrong as well.
export function useKey(text) {
  const key = text.trim();
  if (isKey(key)) sessionStorage.setItem(KEY_NAME, key);
  else sessionStorage.removeItem(KEY_NAME);
  return isKey(key);
}

export function hasKey() {
  return storedKey() !== null;
}

function storedKey() {
  const key = sessionStorage.getItem(KEY_NAME);
  if (key === null || isKey(key)) return key;
  sessionStorage.removeItem(KEY_NAME);
  return null;
}

// Rejects with a TypeError or a DOMException when the server does not answer in time.
export function ask(path, { method = "GET", type, body, timeoutMs = 10_000, keepalive = false } = {}) {
  const headers = {};
  const key = storedKey();
  if (key !== null) headers.authorization = `Bearer ${key}`;
  if (type) headers["content-type"] = type;
  return fetch(path, { method, headers, body, keepalive, cache: "no-store", signal: AbortSignal.timeout(timeoutMs) });
}

// The `error` of an error response, null where the body is none of ours.
export async function readError(response) {
  try {
    return (await response.json()).error ?? null;
  } catch {
    return null;
  }
}

export async function isAlive(timeoutMs) {
  try {
    await ask("/health", { timeoutMs });
    return true;
  } catch {
    return false;
  }
}
