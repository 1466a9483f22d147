import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { strokes } from "../src/pure/hatches.js";
import { stable } from "../src/pure/ids.js";
import { counted, short } from "../src/pure/numbers.js";
import { density } from "../src/pure/png.js";
import { checkPixels, oneByOne, perMetre, pixelsOf, TooLarge } from "../src/pure/sizes.js";

test("px of a picture, whatever its unit", () => {
  const layout = { width: 800, height: 400 };
  assert.deepEqual(pixelsOf([800, "px"], layout, 2), [1600, 800]);
  assert.deepEqual(pixelsOf([1, "in"], layout, 1), [96, 48]);
  assert.deepEqual(pixelsOf([25.4, "mm"], layout, 4), [384, 192]);
  assert.equal(Math.round(perMetre(1)), 3780);
});

test("what a format does not hold is refused with what it holds", () => {
  checkPixels([10_000, 10_000]);
  assert.throws(
    () => checkPixels([10_001, 10_000]),
    (error) => error instanceof TooLarge && /10,001 × 10,000 px, 100,000,000 in all/.test(error.message),
  );
  assert.equal(oneByOne(40_000, "svg"), true);
  assert.equal(oneByOne(40_001, "png"), false);
  assert.throws(
    () => oneByOne(40_001, "svg"),
    (error) => error instanceof TooLarge && /40,001 cells, 40,000 at most/.test(error.message),
  );
});

test("a PNG says how many px a metre has, with a checksum", () => {
  const chunk = density(3780);
  const bytes = new Uint8Array(chunk.buffer);
  assert.equal(chunk.getUint32(0), 9);
  assert.equal(new TextDecoder().decode(bytes.subarray(4, 8)), "pHYs");
  assert.deepEqual([chunk.getUint32(8), chunk.getUint32(12), bytes[16]], [3780, 3780, 1]);
  assert.equal(chunk.getUint32(17), crc32(bytes.subarray(4, 17)));
});

test("ids are those of the picture, whatever Plotly called them", () => {
  const svg = (random) =>
    `<svg><g id="clip${random}xy"/><g id="g${random}"/><g clip-path="url('http://localhost/page#clip${random}xy')"/></svg>`;
  const [one, same, other] = [
    stable(svg("a1b2"), "a1b2"),
    stable(svg("ffff"), "ffff"),
    stable(svg("a1b2").replace("<g", "<b"), "a1b2"),
  ];
  assert.equal(one, same);
  const ids = [...one.matchAll(/id="([^"]*)"/g)].map(([, id]) => id);
  assert.match(ids[0], /^p[0-9a-f]+-clipxy$/);
  assert.ok(one.includes(`url(#${ids[0]})`));
  assert.ok(!other.includes(ids[0]));
});

const box = { x: 0, y: 0, width: 8, height: 4 };

test("a hatch is lines from above a box to below it, a step apart", () => {
  const {
    d,
    stroke,
    "stroke-width": width,
  } = strokes({ tag: "path", d: "M0,8L8,0M0,0", stroke: "#000", "stroke-width": "1px" }, box, 4, 2);
  assert.equal(stroke, "#000");
  assert.equal(width, 2);
  assert.equal(d, "M4,-4L-8,8M8,-4L-4,8M12,-4L0,8M16,-4L4,8");
});

test("a crossed hatch has as many the other way", () => {
  const crossed = { tag: "path", d: "M0,0L1,1M0,0L1,1M0,0L1,1M0,0L1,1M0,0", stroke: "#000", "stroke-width": "1" };
  const lines = strokes(crossed, box, 4, 1).d.split("M").slice(1);
  assert.equal(lines.length, 4 + 4);
  assert.ok(lines.includes("-4,-4L8,8"));
  const aside = strokes(crossed, { ...box, x: 20, y: 6 }, 4, 1)
    .d.split("M")
    .slice(1);
  const at = ([[x, y], [right]]) => ({ sum: x + y, gap: x - y, rising: right < x });
  const drawn = aside.map((line) => at(line.split("L").map((end) => end.split(",").map(Number))));
  const places = (rising, name) => drawn.filter((one) => one.rising === rising).map((one) => one[name]);
  assert.deepEqual(places(true, "sum"), [24, 28, 32, 36, 40], "where the box is, from its first corner to its last");
  assert.deepEqual(places(false, "gap"), [8, 12, 16, 20, 24]);
});

test("dots are dashes without a length", () => {
  const found = strokes({ tag: "circle", r: "1.5", fill: "#123456" }, box, 4, 1);
  assert.equal(found.stroke, "#123456");
  assert.equal(found["stroke-width"], 3);
  assert.equal(found["stroke-dasharray"], "0 4");
  assert.equal(found.d, "M-2,-2H12M-2,2H12M-2,6H12");
});

test("numbers in files and in messages", () => {
  assert.deepEqual([4.000000001, 0.12345, 7].map(short), [4, 0.123, 7]);
  assert.equal(counted(40_000), "40,000");
});
