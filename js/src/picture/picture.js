// A figure as a file, drawn by a browser: the page's own, when somebody saves what they see, or one without a window
// (mha_viz/export/browser.py). Plotly lays it out. What it would draw as a bitmap, or another way the next time, is put right here.

import { stable } from "../pure/ids.js";
import { short } from "../pure/numbers.js";
import { checkPixels, oneByOne, perMetre, pixelsOf } from "../pure/sizes.js";
import { cells } from "./cells.js";
import { webFont } from "./fonts.js";
import { hatch } from "./hatches.js";
import { raster } from "./raster.js";

/** The figure { data, layout } as a Blob, "png" or "svg", or for "pdf" the SVG that a browser prints without any bitmap. `size` is the
 * width of the finished picture in a unit, px, mm or in; a PNG has `scale` px for each px of that. */
export async function pictureOf(Plotly, figure, format, { scale = 1, size = [figure.layout.width, "px"] } = {}) {
  const [width, unit] = size;
  const height = (width * figure.layout.height) / figure.layout.width;
  const pixels = pixelsOf(size, figure.layout, scale);
  if (format === "png") checkPixels(pixels);
  const font = await webFont(figure.layout.font.family);
  const suffix = unit === "px" ? "" : unit;
  const text = (await drawn(Plotly, figure, format))
    .replace(/ width="\S*" height="\S*"/, ` width="${short(width)}${suffix}" height="${short(height)}${suffix}"`)
    .replace(">", `>${font}`);
  const svg = new Blob([text], { type: "image/svg+xml" });
  return format === "png" ? raster(svg, ...pixels, perMetre(scale)) : svg;
}

/** The figure as Plotly's SVG, all marks visible, with what only the pointer meets left out. */
async function drawn(Plotly, { data, layout }, format) {
  const seen = data.filter(({ meta }) => meta !== "lines");
  const traces = seen.map((trace, i) => ({ ...trace, uid: `${i}`, ...(trace.meta === "mark" && { opacity: 1 }) }));
  const plot = document.body.appendChild(document.createElement("div"));
  plot.style.cssText = "position: absolute; left: -10000px; top: 0";
  try {
    await Plotly.newPlot(plot, traces, { ...structuredClone(layout), hovermode: false }, { staticPlot: true });
    const maps = [...plot.querySelectorAll(".hm image")];
    const count = maps.reduce((sum, { __data__: { z } }) => sum + z.length * z[0].length, 0);
    if (oneByOne(count, format)) for (const map of maps) map.replaceWith(await cells(plot, map, format === "pdf" ? 0.5 : 0));
    const hatched = format === "pdf" ? plot.querySelectorAll(".pattern_filled") : [];
    for (const [i, path] of hatched.entries()) hatch(path, `hatch-${i}`);
    for (const line of plot.querySelectorAll(".crisp")) line.setAttribute("shape-rendering", "crispEdges"); // so a stylesheet says
    // Paper has no pixels to keep to, and Chromium would print such lines as thin as can be where they are made smaller.
    if (format === "pdf")
      for (const crisp of plot.querySelectorAll("[shape-rendering]")) crisp.removeAttribute("shape-rendering");
    for (const styled of plot.querySelectorAll("svg [style]")) {
      const style = styled.getAttribute("style"); // which Plotly sets earlier the first time that it draws a legend
      styled.removeAttribute("style");
      styled.setAttribute("style", style);
    }
    return stable(Plotly.Snapshot.toSVG(plot, "svg", 1), plot._fullLayout._uid);
  } finally {
    Plotly.purge(plot);
    plot.remove();
  }
}
