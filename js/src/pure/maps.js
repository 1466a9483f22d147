// Figures of maps. A spot is a cell, { tile, query, key }, tile an index into meta.tiles; with a head where keys lead to one that has
// no map of its own here.

import { axisOf, index } from "./axes.js";
import { blockOf } from "./blocks.js";
import { cellReached, headReached } from "./keys.js";
import { named } from "./names.js";
import { plus, written } from "./numbers.js";
import { inside } from "./polygons.js";

export class Maps {
  role = "attention maps";
  keys =
    "Arrow keys move the chosen cell, Enter is a click on it, Tab goes to the next head and Shift Tab back, Escape resets the zoom, or lets go of the chosen cell.";

  constructor(plot) {
    this.plot = plot;
    this.meta = plot.layout.meta;
  }

  /** The tokens of a tile: in full, queries and keys, and as they are drawn, rows and columns. */
  side(tile) {
    return this.meta.sides[this.meta.tiles[tile].side ?? 0];
  }

  /** The cell at a point of the picture, in px, or null. */
  at(left, top) {
    for (let tile = 0; tile < this.meta.tiles.length; tile++) {
      const { axes, x0, y0 } = this.meta.tiles[tile];
      const [x, y] = axes.map((id) => axisOf(this.plot, id));
      const { queries, keys } = this.side(tile);
      const key = index(x, left, x0, keys.length);
      const query = key === null ? null : index(y, top, y0, queries.length);
      if (query !== null) return { tile, query, key };
    }
    return null;
  }

  has(tile, { query, key }) {
    return query < this.side(tile).queries.length && key < this.side(tile).keys.length;
  }

  /** The block of a cell along one side, "queries" or "keys", of a tile. */
  block(tile, side, i) {
    const { z } = this.plot._fullData[tile];
    return blockOf(i, this.side(tile)[side].length, side === "queries" ? z.length : z[0].length);
  }

  value({ tile, query, key }) {
    const { z, customdata } = this.plot._fullData[tile]; // where what is drawn is not the weight, that is beside it
    return (customdata ?? z)[this.block(tile, "queries", query).block][this.block(tile, "keys", key).block];
  }

  /** The look of a cell that holds no weight, as the legend calls it; null for any other. */
  look({ tile, query, key }) {
    const { axes, x0, y0 } = this.meta.tiles[tile];
    const middle = (side, i) => {
      const { first, last } = this.block(tile, side, i);
      return (first + last) / 2;
    };
    const x = x0 + middle("keys", key);
    const y = y0 + middle("queries", query);
    const hatch = this.plot._fullData.find((trace) => trace.legendgroup && trace.xaxis === axes[0] && inside(trace, x, y));
    return hatch ? hatch.name : null;
  }

  /** The large map of the chosen head, where it is drawn as `settled` and reached by keys. */
  settled({ head, query, key }) {
    const tile = this.meta.tiles.findLastIndex((entry) => entry.head === head);
    return { tile: Math.max(0, tile), query, key };
  }

  /** A cell as the server knows it: tiles change their places. */
  sent({ tile, head = this.meta.tiles[tile].head, query, key }) {
    return { head, query, key };
  }

  words(cell) {
    const { tile, head, query, key } = cell;
    const { queries, keys, first } = this.side(tile);
    const away = head !== undefined && head !== this.meta.tiles[tile].head;
    const name = away ? `head ${head}` : this.plot._fullData[tile].name;
    const tokens = [
      this.names(tile, "query", "queries", query, queries, first[0]),
      this.names(tile, "key", "keys", key, keys, first[1]),
    ];
    return [name, ...tokens, ...(away ? [] : this.numbers(cell)), away ? null : this.look(cell)].filter(Boolean);
  }

  /** "query 3 “on”", or where a block stands for several: "queries 2 “sat” … 3 “on”". The texts are those from number `from` on; of
   * a map of a sequence that is never there whole, they are the numbers of blocks: "queries 256–383". */
  names(tile, one, several, i, texts, from) {
    const { first, last } = this.block(tile, several, i);
    const alone = first === last;
    if (this.side(tile).blocks[several === "queries" ? 0 : 1])
      return `${several} ${alone ? texts[first] : `${texts[first]} … ${texts[last]}`}`;
    if (alone) return named(one, from + i, texts[i]);
    return `${named(several, from + first, texts[first])} … ${named("", from + last, texts[last]).trim()}`;
  }

  /** The weight; of a difference what changed, and from what to what. */
  numbers(cell) {
    const value = this.value(cell);
    const { source, head } = this.meta.tiles[cell.tile];
    if (!Number.isFinite(value)) return [];
    const { z } = this.plot._fullData[cell.tile];
    const { queries, keys } = this.side(cell.tile);
    const several = z.length < queries.length || z[0].length < keys.length;
    const largest = several && !this.meta.quantity.startsWith("largest") ? "largest " : "";
    if (source !== "difference") return [`${largest}${this.meta.quantity} ${written(value)}`];
    const sides = ["a", "b"].map((side) => this.meta.tiles.findIndex((tile) => tile.source === side && tile.head === head));
    const from = sides
      .filter((tile) => tile >= 0)
      .map((tile) => `${this.plot._fullData[tile].name.split(":")[0]} ${written(this.value({ ...cell, tile }))}`);
    return [`${largest}change ${plus(value)}${written(value)}`, from.join(", ")];
  }

  tip(cell) {
    const [head, query, key, ...rest] = this.words(cell);
    return [head, `${query} → ${key}`, ...rest].join("\n");
  }

  /** The cell to which a key leads from the chosen one; null for any other key, and for Tab beyond the last head and before the first. */
  reached(pressed, { tile, head = this.meta.tiles[tile].head, query, key }, shift) {
    const { queries, keys } = this.side(tile);
    const cell = cellReached(pressed, { query, key }, queries.length, keys.length);
    if (cell) return { tile, head, ...cell };
    const next = headReached(pressed, shift, head, this.meta.order);
    if (next === undefined) return null;
    const there = this.meta.tiles.findIndex((entry) => entry.head === next);
    return { tile: there < 0 ? tile : there, head: next, query, key };
  }
}
