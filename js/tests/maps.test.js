import assert from "node:assert/strict";
import { test } from "node:test";
import { Maps } from "../src/pure/maps.js";
import { maps } from "./plots.js";

const shown = new Maps(maps());

test("a point is in a cell of a tile, or beside them", () => {
  assert.deepEqual(shown.at(35, 5), { tile: 0, query: 0, key: 3 });
  assert.deepEqual(shown.at(55, 25), { tile: 1, query: 2, key: 0 });
  assert.deepEqual(shown.at(30, 90), { tile: 2, query: 2, key: 1 });
  assert.equal(shown.at(45, 5), null);
});

test("a cell's words are its head, its tokens and its weight", () => {
  assert.deepEqual(shown.words({ tile: 0, query: 1, key: 2 }), ["head 1", "query 1 “b”", "key 2 “c”", "weight 0.750000"]);
  assert.equal(shown.tip({ tile: 2, query: 2, key: 0 }), "head 0\nquery 2 → key 0 “a”\nweight 0.125000");
});

test("a tile has the cells of its side and no more", () => {
  const has = (query, key) => shown.has(2, { query, key });
  assert.deepEqual([has(2, 3), has(3, 3), has(2, 4)], [true, false, false]);
});

test("tokens of a part are numbered from where it begins", () => {
  const plot = maps();
  plot.layout.meta.sides[0].first = [100, 200];
  plot._fullData[2].z = [[0.5, 0.75]];
  assert.deepEqual(new Maps(plot).words({ tile: 2, query: 1, key: 1 }).slice(1, 3), [
    "queries 100 “a” … 102 “2”",
    "keys 200 “a” … 201 “b”",
  ]);
});

test("a hatched cell says what the legend says", () => {
  assert.equal(shown.look({ tile: 2, query: 0, key: 3 }), "masked");
  assert.equal(shown.look({ tile: 2, query: 0, key: 2 }), null);
});

test("what is drawn instead of the weight is not what is said", () => {
  const plot = maps();
  plot._fullData[2].customdata = plot._fullData[2].z;
  plot._fullData[2].z = plot._fullData[2].z.map((row) => row.map(Math.log10));
  assert.equal(new Maps(plot).value({ tile: 2, query: 1, key: 1 }), 0.75);
});

test("a cell with no number has none said", () => {
  const plot = maps();
  plot._fullData[2].z = [[Number.NaN, 0, 0, 0], ...plot._fullData[2].z.slice(1)];
  assert.deepEqual(new Maps(plot).words({ tile: 2, query: 0, key: 0 }), ["head 0", "query 0 “a”", "key 0 “a”"]);
});

test("a block says which tokens it stands for, and that its weight is the largest", () => {
  const plot = maps();
  plot._fullData[2].z = [[0.5, 0.75]];
  assert.deepEqual(new Maps(plot).words({ tile: 2, query: 1, key: 1 }), [
    "head 0",
    "queries 0 “a” … 2",
    "keys 0 “a” … 1 “b”",
    "largest weight 0.500000",
  ]);
});

test("blocks of a sequence that is never there whole are called by their numbers", () => {
  const side = { queries: ["0–127", "128–255"], keys: ["a", "b", "c", "d"], first: [0, 64], blocks: [true, false] };
  const plot = maps({ sides: [side] });
  plot._fullData[2].z = [
    [0, 0, 0, 0.5],
    [0, 0, 0, 0],
  ];
  assert.deepEqual(new Maps(plot).words({ tile: 2, query: 0, key: 2 }).slice(1, 3), ["queries 0–127", "key 66 “c”"]);
});

test("a change has its sign, and from what to what", () => {
  const plot = maps();
  ["a", "b", "difference"].map((source, i) => Object.assign(plot.layout.meta.tiles[i], { head: 0, source }));
  plot._fullData[0].name = "A: head 0";
  plot._fullData[1].name = "B: head 0";
  plot._fullData[2].z = [
    [1, 0, 0, -1],
    [0.25, 0.75, -0.75, -0.25],
    [0, 0, 0, 0],
  ];
  const numbers = (query, key) => new Maps(plot).numbers({ tile: 2, query, key });
  assert.deepEqual(numbers(0, 0), ["change +1.000000", "A 0.000000, B 1.000000"]);
  assert.deepEqual(numbers(0, 3), ["change −1.000000", "A 1.000000, B 0.000000"]);
});

test("a chosen cell is that of the last tile of its head, the large one", () => {
  assert.deepEqual(shown.settled({ head: 0, query: 1, key: 2 }), { tile: 2, query: 1, key: 2 });
  assert.deepEqual(shown.settled({ head: 7, query: 1, key: 2 }), { tile: 0, query: 1, key: 2 });
});

test("keys lead to cells and heads", () => {
  assert.deepEqual(shown.reached("ArrowDown", { tile: 2, query: 0, key: 2 }, false), { tile: 2, head: 0, query: 1, key: 2 });
  assert.deepEqual(shown.reached("PageUp", { tile: 2, query: 0, key: 2 }, false), { tile: 0, head: 1, query: 0, key: 2 });
  assert.equal(shown.reached("Escape", { tile: 2, query: 0, key: 2 }, false), null);
});

test("a head without a map is reached and named, and sent to the server", () => {
  const away = shown.reached("Tab", { tile: 2, query: 0, key: 2 }, false);
  assert.deepEqual(away, { tile: 2, head: 2, query: 0, key: 2 });
  assert.deepEqual(shown.words(away), ["head 2", "query 0 “a”", "key 2 “c”"]);
  assert.deepEqual(shown.sent(away), { head: 2, query: 0, key: 2 });
  assert.deepEqual(shown.sent({ tile: 0, query: 0, key: 2 }), { head: 1, query: 0, key: 2 });
});
