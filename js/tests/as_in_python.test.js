// What Python and the browser decide alike: both are held to the same cases, Python by tests/test_python_and_js.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { edges } from "../src/pure/axes.js";
import { blockOf } from "../src/pure/blocks.js";
import { named, niceStep } from "../src/pure/names.js";
import { written, writtenShort } from "../src/pure/numbers.js";
import { usableWidth } from "../src/pure/places.js";
import { PER_INCH } from "../src/pure/sizes.js";
import { stepped } from "../src/pure/stepped.js";
import { axis } from "./plots.js";

const CASES = JSON.parse(readFileSync(new URL("../../tests/data/python_and_js.json", import.meta.url), "utf8"));

for (const { value, six, three, change } of CASES.numbers)
  test(`${value} is written alike`, () => {
    assert.equal(written(value), six);
    assert.equal(writtenShort(value, false), three);
    assert.equal(writtenShort(value, true), change);
  });

for (const [least, step] of CASES.steps)
  test(`as many tokens are named where every ${least}th has room`, () => assert.equal(niceStep(least), step));

for (const [i, text, name] of CASES.tokens)
  test(`token ${name} has the same name`, () => assert.equal(named("query", i, text), `query ${name}`));

for (const { cells, blocks, last } of CASES.blocks)
  test(`${cells} cells lie in the same ${blocks} blocks`, () => {
    for (let i = 0; i < cells; i++) {
      const found = blockOf(i, cells, blocks);
      const block = last.findIndex((end) => i <= end);
      assert.deepEqual(found, { block, first: block ? last[block - 1] + 1 : 0, last: last[block] });
    }
  });

for (const { about, side, count, cell, px } of CASES.outlines)
  test(`the outline of a cell: ${about}`, () => assert.deepEqual(edges(axis(0, side, count), 0, cell, count), px));

for (const { text, by, to } of CASES.stepped) test(`${text} is stepped`, () => assert.equal(stepped(text, by), to));

for (const text of CASES.not_stepped)
  test(`"${text}" is not stepped`, () => {
    assert.equal(stepped(text, 1), null);
    assert.equal(stepped(text, -1), null);
  });

test("an inch has as much of each unit", () => assert.deepEqual(PER_INCH, CASES.units));

for (const [px, width] of CASES.widths) test(`a picture in ${px} px is as wide`, () => assert.equal(usableWidth(px), width));
