import assert from "node:assert/strict";
import { test } from "node:test";
import { cellReached, headReached, panelReached, placeReached, tokenReached } from "../src/pure/keys.js";

test("arrows move a cell, and no further than the map", () => {
  assert.deepEqual(cellReached("ArrowDown", { query: 1, key: 1 }, 3, 4), { query: 2, key: 1 });
  assert.deepEqual(cellReached("ArrowDown", { query: 2, key: 1 }, 3, 4), { query: 2, key: 1 });
  assert.deepEqual(cellReached("ArrowUp", { query: 0, key: 1 }, 3, 4), { query: 0, key: 1 });
  assert.deepEqual(cellReached("ArrowRight", { query: 0, key: 3 }, 3, 4), { query: 0, key: 3 });
  assert.deepEqual(cellReached("ArrowLeft", { query: 0, key: 3 }, 3, 4), { query: 0, key: 2 });
  assert.equal(cellReached("a", { query: 0, key: 3 }, 3, 4), null);
});

test("Page Up and Page Down go round the heads in their order", () => {
  assert.equal(headReached("PageDown", false, 5, [3, 5, 1]), 1);
  assert.equal(headReached("PageDown", false, 1, [3, 5, 1]), 3);
  assert.equal(headReached("PageUp", false, 3, [3, 5, 1]), 1);
});

test("Tab leaves the picture beyond the last head and Shift Tab before the first", () => {
  assert.equal(headReached("Tab", false, 3, [3, 5]), 5);
  assert.equal(headReached("Tab", false, 5, [3, 5]), undefined);
  assert.equal(headReached("Tab", true, 5, [3, 5]), 3);
  assert.equal(headReached("Tab", true, 3, [3, 5]), undefined);
});

test("from the average, which has no place in the order, Tab and Page Down lead to the first head", () => {
  assert.equal(headReached("Tab", false, null, [3, 5]), 3);
  assert.equal(headReached("PageDown", false, null, [3, 5]), 3);
});

test("without heads no key leads to one, nor does any other key", () => {
  for (const pressed of ["PageUp", "PageDown", "Tab"]) assert.equal(headReached(pressed, false, null, []), undefined);
  assert.equal(headReached("Enter", false, 3, [3, 5]), undefined);
});

test("panels of lines go round, and the average leads to the heads beside it", () => {
  assert.equal(panelReached("PageDown", 0, 3), 1);
  assert.equal(panelReached("PageDown", 2, 3), 0);
  assert.equal(panelReached("PageUp", 0, 3), 2);
  assert.equal(panelReached("PageUp", 3, 3), 1);
  assert.equal(panelReached("PageUp", 0, 1), null);
  assert.equal(panelReached("ArrowUp", 0, 3), null);
});

test("arrows move the token in focus along its side and across to the one beside it", () => {
  const query = { query: 2, key: null };
  assert.deepEqual(tokenReached("ArrowUp", query, 3, 2), { query: 1, key: null });
  assert.deepEqual(tokenReached("ArrowDown", query, 3, 2), query);
  assert.deepEqual(tokenReached("ArrowRight", query, 3, 2), { query: null, key: 1 });
  assert.deepEqual(tokenReached("ArrowLeft", query, 3, 2), query);
  assert.deepEqual(tokenReached("ArrowDown", { query: null, key: 0 }, 3, 2), { query: null, key: 1 });
  assert.deepEqual(tokenReached("ArrowLeft", { query: null, key: 1 }, 3, 2), { query: 1, key: null });
  assert.equal(tokenReached("PageUp", query, 3, 2), null);
});

test("arrows move from a line by its query, and from nothing in focus by the first", () => {
  assert.deepEqual(tokenReached("ArrowDown", { query: 0, key: 1 }, 3, 2), { query: 1, key: null });
  assert.deepEqual(tokenReached("ArrowDown", { query: null, key: null }, 3, 2), { query: 1, key: null });
  assert.deepEqual(tokenReached("ArrowRight", { query: null, key: null }, 3, 2), { query: null, key: 0 });
});

test("tokens in a row", () => {
  assert.equal(placeReached("ArrowRight", 1, 3), 2);
  assert.equal(placeReached("ArrowRight", 2, 3), 2);
  assert.equal(placeReached("ArrowLeft", 0, 3), 0);
  assert.equal(placeReached("Home", 2, 3), 0);
  assert.equal(placeReached("End", 0, 3), 2);
  assert.equal(placeReached("ArrowUp", 0, 3), null);
});
