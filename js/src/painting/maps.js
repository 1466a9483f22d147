// What is chosen and what is pointed at in maps, drawn over them.

import { axisOf, edges } from "../pure/axes.js";
import { Pointing } from "./pointing.js";
import { twice } from "./twice.js";

const pointings = new WeakMap(); // Maps → their Pointing, which measures labels once

/** Outlines both cells in every tile at once, and lights up what belongs to the one that is pointed at. */
export function paintMaps(pen, maps, pointed, chosen) {
  if (pointed) {
    if (!pointings.has(maps)) pointings.set(maps, new Pointing(maps, pen));
    pointings.get(maps).draw(pointed);
  }
  maps.meta.tiles.forEach(({ axes, x0, y0 }, tile) => {
    const [across, down] = axes.map((id) => axisOf(maps.plot, id));
    const { queries, keys } = maps.side(tile);
    pen.save();
    pen.beginPath();
    pen.rect(across._offset - 4, down._offset - 4, across._length + 8, down._length + 8);
    pen.clip();
    const cells = [
      [pointed, [3, 1]],
      [chosen, [5, 2]],
    ];
    for (const [cell, widths] of cells) {
      if (!cell || !maps.has(tile, cell)) continue;
      const [left, right] = edges(across, x0, cell.key, keys.length);
      const [top, bottom] = edges(down, y0, cell.query, queries.length);
      twice(pen, maps.plot.layout, widths, () => pen.strokeRect(left, top, right - left, bottom - top));
    }
    pen.restore();
  });
}
