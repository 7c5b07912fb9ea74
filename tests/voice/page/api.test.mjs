// What the page does with the API key, on a storage like the browser's.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { ask, hasKey, isKey, useKey } from "../../../voice/page/api.js";

let stored;
let sent;

beforeEach(() => {
  stored = new Map();
  globalThis.sessionStorage = {
    getItem: (name) => stored.get(name) ?? null,
    setItem: (name, value) => stored.set(name, value),
    removeItem: (name) => stored.delete(name),
  };
  globalThis.fetch = async (path, { headers }) => (sent = new Headers(headers)); // throws for what no header takes
});

test("a key is sent without the space around it", async () => {
  assert.equal(useKey(" 0123456789abcdef\n"), true);
  await ask("/health");
  assert.equal(sent.get("authorization"), "Bearer 0123456789abcdef");
});

for (const wrong of ["0123456789\u2013abcdef", "\u043a\u043b\u044e\u0447", "a\nb", "a\u0000b", "a\u00a0b", "\u00e9", "  ", ""]) {
  test(`no key is ${JSON.stringify(wrong)}, and none is kept`, async () => {
    useKey("0123456789abcdef");
    assert.equal(useKey(wrong), false);
    assert.equal(hasKey(), false);
    await ask("/health");
    assert.equal(sent.has("authorization"), false);
  });
}

test("what is stored and no key is dropped", async () => {
  stored.set("offhook-api-key", "0123\u2013");
  await ask("/health");
  assert.equal(sent.has("authorization"), false);
  assert.equal(stored.size, 0);
});

test("whatever is taken for a key fits a header", () => {
  for (let code = 0; code < 0x300; code += 1) {
    const text = `a${String.fromCharCode(code)}b`;
    if (isKey(text)) new Headers({ authorization: `Bearer ${text}` });
  }
});
