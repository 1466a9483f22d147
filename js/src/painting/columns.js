import { axisOf, edges } from "../pure/axes.js";
import { twice } from "./twice.js";

/** Outlines the cell that is pointed at in the figure of decoding. */
export function paintColumns(pen, { plot, meta }, pointed) {
  if (!pointed || pointed.panel === undefined) return;
  const { axes, rows } = meta.panels[pointed.panel];
  const [x, y] = axes.map((id) => axisOf(plot, id));
  const [left, right] = edges(x, 0, pointed.key, meta.keys.length);
  const [top, bottom] = edges(y, 0, pointed.row, rows.length);
  twice(pen, plot.layout, [3, 1], () => pen.strokeRect(left, top, right - left, bottom - top));
}
