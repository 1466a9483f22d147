// How large a picture in a file may be. mha_viz/export/browser.py knows the same units.

import { counted } from "./numbers.js";

export const PER_INCH = { px: 96, mm: 25.4, in: 1 };
const MOST_CELLS = 40_000; // of a vector picture: 3 MB, which a browser opens within a second
const MOST_PIXELS = 100_000_000; // of a PNG: 400 MB while it is made

/** A picture is larger than its format holds; the message goes on from the format's name. */
export class TooLarge extends Error {}

/** [width, height] in px of a picture of this width in a unit, as high to its width as the figure, with `scale` px for each px of it. */
export function pixelsOf([width, unit], layout, scale) {
  const height = (width * layout.height) / layout.width;
  return [width, height].map((side) => Math.round((side / PER_INCH[unit]) * PER_INCH.px * scale));
}

/** The px of an inch's 1/96 as a PNG says it: px per metre. */
export function perMetre(scale) {
  return (scale * PER_INCH.px) / 0.0254;
}

/** Refuses a PNG of more px than a browser draws. */
export function checkPixels([across, down]) {
  if (across * down <= MOST_PIXELS) return;
  const most = `${counted(MOST_PIXELS)} in all`;
  throw new TooLarge(
    `holds no ${counted(across)} × ${counted(down)} px, ${most}: choose a smaller scale or size, or SVG or PDF.`,
  );
}

/** Whether so many cells can be drawn one by one; a PNG of more keeps Plotly's bitmaps, any other picture cannot be. */
export function oneByOne(cells, format) {
  if (cells > MOST_CELLS && format !== "png")
    throw new TooLarge(
      `holds no ${counted(cells)} cells, ${counted(MOST_CELLS)} at most: choose fewer heads, or one alone, or PNG at 4×.`,
    );
  return cells <= MOST_CELLS;
}
