import assert from "node:assert/strict";
import { test } from "node:test";
import { index, inSight, span, spans, within } from "../src/pure/axes.js";
import { inside } from "../src/pure/polygons.js";
import { axis, zoomed } from "./plots.js";

test("within leads to the nearest one", () => {
  assert.deepEqual(
    [-2, 0, 2, 3, 9].map((i) => within(i, 4)),
    [0, 0, 2, 3, 3],
  );
});

test("a px is in a cell, and beside the axis in none", () => {
  const five = axis(100, 20, 5);
  assert.deepEqual(
    [99, 111, 119, 121, 199, 201].map((px) => index(five, px, 0, 5)),
    [null, 0, 0, 1, 4, null],
  );
});

test("a px of the axis beyond the cells is in none", () => {
  assert.equal(index(axis(0, 20, 5), 95, 0, 4), null);
  assert.equal(index(axis(0, 20, 5), 5, 1, 4), null, "before the first one, whose centre is at 1");
});

test("of a zoomed axis the cells that are seen are met", () => {
  const from2 = zoomed(0, 10, 8, 2);
  assert.deepEqual(
    [1, 79].map((px) => index(from2, px, 0, 8)),
    [2, 5],
  );
});

test("a cell's px and the tile's end where the axis does", () => {
  assert.deepEqual(span(axis(100, 20, 5), 0, 1, 5), [120, 140, 100, 200]);
  assert.deepEqual(span(axis(100, 20, 5), 1, 1, 3), [140, 160, 120, 180], "a tile that the axis reaches beyond");
  const from2 = zoomed(0, 10, 8, 2);
  assert.deepEqual(span(from2, 0, 3, 8), [20, 40, 0, 80]);
  assert.deepEqual(span(from2, 0, 0, 8), [0, 0, 0, 80], "zoomed away");
});

test("the cells in sight of a zoomed axis, whichever way it runs", () => {
  assert.deepEqual(inSight([1.5, 4.5], 0, 8), [2, 5]);
  assert.deepEqual(inSight([4.5, 1.5], 0, 8), [2, 5]);
  assert.deepEqual(inSight([-0.5, 7.5], 0, 8), [0, 8]);
  assert.deepEqual(inSight([2.5, 5.5], 1, 8), [2, 5], "the first cell's centre is at 1");
  assert.deepEqual(inSight([1.95, 4.95], 0, 8), [2, 5], "half a cell is not enough to be in sight");
  assert.deepEqual(inSight([3.1, 3.2], 0, 8), [4, 5], "one at least");
});

test("spans of cells have gaps, keep to whole px of a bitmap and are on the axis", () => {
  assert.deepEqual(spans(axis(0, 10, 3), [-0.5, 0.5, 1.5, 2.5], 1, 0, null), [
    [0, 9],
    [10, 19],
    [20, 29],
  ]);
  assert.deepEqual(spans(axis(0, 10.4, 2), [-0.5, 0.5, 1.5], 0, 0, 21), [
    [0, 10],
    [10, 21],
  ]);
  assert.deepEqual(
    spans(axis(0, 10, 2), [-1.5, -0.5, 0.5, 1.5, 2.5], 0, -10, null),
    [
      [0, 10],
      [10, 20],
    ],
    "zoomed",
  );
  assert.deepEqual(spans(axis(0, 1, 2), [-0.5, 0.5, 1.5], 1, 0, null), [], "nothing is left between gaps");
});

test("a point lies in one of several polygons or in none", () => {
  const gap = Number.NaN;
  const two = { x: [0, 2, 2, 0, gap, 4, 6, 6, 4], y: [0, 0, 2, 2, gap, 0, 0, 2, 2] };
  assert.deepEqual(
    [
      [1, 1],
      [5, 1],
      [3, 1],
      [7, 1],
      [1, 3],
      [-1, 1],
    ].map(([x, y]) => inside(two, x, y)),
    [true, true, false, false, false, false],
  );
});

test("a staircase, as causal masks have it", () => {
  const stairs = { x: [0, 6, 6, 4, 4, 2, 2, 0], y: [0, 0, 6, 6, 4, 4, 2, 2] };
  const at = (x, y) => inside(stairs, x, y);
  assert.deepEqual([at(1, 1), at(3, 3), at(5, 5), at(1, 3), at(3, 5), at(7, 5)], [true, true, true, false, false, false]);
});

test("a point in a hole is outside", () => {
  const ring = { x: [0, 6, 6, 0, Number.NaN, 2, 4, 4, 2], y: [0, 0, 6, 6, Number.NaN, 2, 2, 4, 4] };
  assert.deepEqual(
    [
      [1, 1],
      [3, 3],
      [5, 3],
    ].map(([x, y]) => inside(ring, x, y)),
    [true, false, true],
  );
});
