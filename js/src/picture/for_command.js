// What mha_viz/export/browser.py calls in a browser without a window.

import { TooLarge } from "../pure/sizes.js";
import { dataUrl } from "./fonts.js";
import { pictureOf } from "./picture.js";

/** The figure, as JSON, drawn as `pictureOf` does: { drawn }, an address that holds the file, or { wrong }, why its format holds none. */
export async function draw(figure, format, scale, size) {
  try {
    return { drawn: await dataUrl(await pictureOf(window.Plotly, JSON.parse(figure), format, { scale, size })) };
  } catch (error) {
    if (error instanceof TooLarge) return { wrong: error.message };
    throw error;
  }
}
