import assert from "node:assert/strict";
import { test } from "node:test";
import { filled, rooms } from "../src/pure/bars.js";
import { unanswered, withChoice } from "../src/pure/choices.js";
import { ticks } from "../src/pure/names.js";
import { plus, written, writtenShort } from "../src/pure/numbers.js";
import { beside } from "../src/pure/places.js";

test("a number that six digits would hide has a power of ten", () => {
  assert.equal(written(2e-7), "2.00e−7");
  assert.equal(written(-1.234e-12), "−1.23e−12");
});

test("what is no number is said to be none, and no change has no sign", () => {
  assert.equal(writtenShort(Number.NaN, true), "n/a");
  assert.deepEqual(
    [0.5, 0, -0.5].map((value) => plus(value)),
    ["+", "", ""],
  );
  assert.equal(plus(0.5, false), "");
});

test("clicks wait until they are answered, what keys moved to gives way", () => {
  const click = { serial: 1, pressed: true };
  const key = { serial: 2, pressed: false };
  const last = { serial: 3, pressed: false };
  const waiting = withChoice(withChoice(withChoice([], click), key), last);
  assert.deepEqual(waiting, [click, last]);
  assert.deepEqual(unanswered(waiting, 1), [last]);
  assert.deepEqual(unanswered(waiting, 3), []);
});

test("as many names stand beside a map as there is room for", () => {
  const texts = ["a", "b", "c", "d", "e", "f"];
  assert.deepEqual(ticks(texts, 14, 14).tickvals, [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(ticks(texts, 14, 10), { tickvals: [0, 2, 4], ticktext: ["a", "c", "e"] });
});

test("a tip is beside the pointer, on the side with room, and never before the picture", () => {
  assert.equal(beside(100, 50, 200), 116);
  assert.equal(beside(140, 50, 200), 74);
  assert.equal(beside(40, 50, 80), 0);
});

const measure = (text) => 7 * text.length;
const label = (width, name, source = "", size = 14) => ({ label: [0, 0, width, 30], title: [name, size], source });

test("bars of one kind are of one length, with the value in figures beside all of them", () => {
  const [one, two, large] = rooms([label(120, "head 1"), label(120, "head 10"), label(400, "head 1", "", 18)], measure);
  assert.equal(one.long, 120 - (49 + 8) - (35 + 6));
  assert.equal(two.long, one.long);
  assert.equal(large.long, 90, "no longer than that");
  assert.ok(one.written && two.written && large.written);
  assert.deepEqual([one.start, two.start], [50, 57]);
});

test("where one of a kind has no room for figures none has them", () => {
  const [one, two] = rooms([label(120, "head 1"), label(100, "head 10")], measure);
  assert.ok(!one.written && !two.written);
  assert.equal(one.long, 100 - 57);
  assert.equal(two.long, one.long);
});

test("a bar is filled from zero to its value, and no further than the scale", () => {
  const largest = { weight: 0.5, change: 0.5 };
  assert.deepEqual(filled(0.25, largest, false), [0, 0.5]);
  assert.deepEqual(filled(2, largest, false), [0, 1]);
  assert.deepEqual(filled(0.25, largest, true), [0.5, 0.75]);
  assert.deepEqual(filled(-0.25, largest, true), [0.25, 0.5]);
  assert.equal(filled(Number.NaN, largest, false), null);
});
