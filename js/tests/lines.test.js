import assert from "node:assert/strict";
import { test } from "node:test";
import { Columns } from "../src/pure/columns.js";
import { Lines } from "../src/pure/lines.js";
import { columns, lines } from "./plots.js";

const shown = new Lines(lines());
const decoding = new Columns(columns());

test("a point beside the lines is a token's: its dot and its name, outwards", () => {
  assert.deepEqual(shown.at(20, 31), { panel: 0, query: 1, key: null });
  assert.deepEqual(shown.at(57, 31), { panel: 0, query: 1, key: null });
  assert.deepEqual(shown.at(380, 29), { panel: 1, query: null, key: 1 });
  assert.equal(shown.at(20, 80), null, "below the last one");
  assert.equal(shown.at(380, 49), null, "nor is there a third key");
  assert.equal(shown.at(20, -1), null, "above the first one");
  assert.equal(shown.at(5, 31), null, "beyond its name");
});

test("a point among the lines is the nearest one's, if that is near", () => {
  assert.deepEqual(shown.at(100, 32), { panel: 0, query: 1, key: 1 });
  assert.deepEqual(shown.at(100, 22), { panel: 0, query: 1, key: 0 });
  assert.deepEqual(shown.at(100, 13), { panel: 0, query: 0, key: 0 });
  assert.equal(shown.at(100, 60), null);
  const steep = lines();
  for (const panel of steep.layout.meta.panels) panel.key.y = 110; // key 0, 100 px down and 100 across
  assert.ok(new Lines(steep).at(100, 60 + 8), "8 px below at 45° is 5.7 px beside it");
  assert.equal(new Lines(steep).at(100, 60 - 9), null, "9 px above it is 6.4");
});

test("lines of a token come strongest first", () => {
  const all = (spot, panel) => shown.of(spot, panel).map(([query, key]) => [query, key]);
  assert.deepEqual(all({ query: 1, key: null }, 0), [
    [1, 1],
    [1, 0],
  ]);
  assert.deepEqual(all({ query: null, key: 0 }, 0), [
    [0, 0],
    [1, 0],
  ]);
  assert.deepEqual(all({ query: 1, key: 0 }, 0), [[1, 0]]);
});

test("words of a token, of a line, and of nothing", () => {
  const reads = ["reads key 1 “y”: 0.750000", "reads key 0 “x”: 0.250000"];
  assert.deepEqual(shown.words({ panel: 0, query: 1, key: null }), ["head 0", "query 1 “b”", ...reads]);
  assert.deepEqual(shown.words({ panel: 1, query: null, key: 1 }), ["head 1", "key 1 “y”", "is read by query 2 “c”: 1.000000"]);
  assert.deepEqual(shown.words({ panel: 0, query: 1, key: 0 }), ["head 0", "query 1 “b”", "key 0 “x”", "weight 0.250000"]);
  assert.deepEqual(shown.words({ panel: 1, query: 0, key: null }), ["head 1", "query 0 “a”", "no line"]);
  assert.deepEqual(shown.words({ panel: 1, query: null, key: null }), ["no token in focus"]);
});

test("a token is chosen in all heads, a line and a head that was turned to in one", () => {
  assert.deepEqual(shown.sent({ panel: 1, query: 0, key: null }), { head: null, query: 0, key: null });
  assert.deepEqual(shown.sent({ panel: 1, query: 2, key: 1 }), { head: 1, query: 2, key: 1 });
  const turned = shown.reached("PageDown", { panel: 0, query: 0, key: null });
  assert.deepEqual(shown.sent(turned), { head: 1, query: 0, key: null });
  assert.deepEqual(shown.sent(shown.reached("ArrowDown", turned)), { head: null, query: 1, key: null });
});

test("a chosen token is settled in its head's panel, and in the first one where it has no head", () => {
  assert.deepEqual(shown.settled({ head: 1, query: 2, key: null }), { panel: 1, query: 2, key: null, settled: true });
  assert.equal(shown.settled({ head: 9, query: 2, key: null }).panel, 0);
});

test("what is no key of lines leads nowhere", () => {
  assert.equal(shown.reached("Enter", { panel: 0, query: 0, key: null }), null);
});

test("the average's panel is passed over by keys", () => {
  assert.equal(shown.reached("PageDown", { panel: 1, query: 0, key: null }).panel, 0);
});

test("in decoding a point is a cell, and its words say what is still to come", () => {
  assert.deepEqual(decoding.at(15, 15), { panel: 0, row: 1, key: 1 });
  assert.equal(decoding.at(35, 5), null);
  assert.deepEqual(decoding.words({ panel: 0, row: 1, key: 1 }), ["head 1, last query", "token 1 “b”", "weight 0.250000"]);
  assert.deepEqual(decoding.words({ panel: 0, row: 0, key: 2 }), ["head 0, last query", "token 2 “c”", "still to come"]);
  assert.deepEqual(decoding.words({ key: 0 }), ["token 0 “a”"]);
});

test("in decoding keys stay within the tokens that are there, and so does what is sent", () => {
  assert.deepEqual(decoding.reached("ArrowRight", { key: 1 }), { query: null, key: 1 });
  assert.deepEqual(decoding.reached("Home", { key: 1 }), { query: null, key: 0 });
  assert.equal(decoding.reached("ArrowUp", { key: 1 }), null);
  assert.deepEqual(decoding.sent({ key: 2 }), { head: null, query: null, key: 1 });
});
