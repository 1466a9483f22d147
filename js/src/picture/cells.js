import { spans } from "../pure/axes.js";
import { short } from "../pure/numbers.js";
import { element } from "./elements.js";

/** The cells of a map, each a rectangle where Plotly's bitmap has it on the screen and of its colour there. Cells without a value are
 * left out, and those that a zoomed axis has moved off the picture. In a PDF, whose viewers soften edges, cells without a gap reach so
 * many px `under` the next: paper would shine through. */
export async function cells(plot, image, under) {
  const { trace, x, y } = image.__data__;
  const { xaxis, yaxis } = plot._fullLayout._plots[trace.xaxis + trace.yaxis];
  const [left, top, width, height] = ["x", "y", "width", "height"].map((name) => Number(image.getAttribute(name)));
  const bitmap = await pixels(image.getAttribute("href"));
  const stretched = image.hasAttribute("style"); // a bitmap of one px a cell: any other has its cells on whole px
  const columns = spans(xaxis, x, trace.xgap, left, stretched ? null : width);
  const rows = spans(yaxis, y, trace.ygap, top, stretched ? null : height);
  const found = element("g", { class: "cells", "shape-rendering": "crispEdges" });
  const reach = stretched ? under : 0;
  for (const [y0, y1] of rows)
    for (const [x0, x1] of columns) {
      const column = Math.floor((((x0 + x1) / 2 - left) / width) * bitmap.width);
      const row = Math.floor((((y0 + y1) / 2 - top) / height) * bitmap.height);
      const [red, green, blue, there] = bitmap.data.subarray(4 * (row * bitmap.width + column));
      if (!there) continue;
      const fill = `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
      const right = Math.min(x1 + reach, columns.at(-1)[1]);
      const bottom = Math.min(y1 + reach, rows.at(-1)[1]);
      found.append(element("rect", { x: x0, y: y0, width: short(right - x0), height: short(bottom - y0), fill }));
    }
  return found;
}

/** The px of a bitmap, as ImageData. */
async function pixels(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
  pen.drawImage(image, 0, 0);
  return pen.getImageData(0, 0, image.width, image.height);
}
