// Figures of maps. A spot is a cell, { tile, query, key }, tile an index into meta.tiles; with a head where keys lead to one that has
// no map of its own here.

class Maps {
  role = "attention maps";
  keys = "Arrow keys move the chosen cell, Enter is a click on it, Tab goes to the next head and Shift Tab back, Escape resets the zoom, or lets go of the chosen cell.";

  constructor(plot) {
    this.plot = plot;
    this.meta = plot.layout.meta;
  }

  // The tokens of a tile: in full, queries and keys, and as they are drawn, rows and columns.
  side(tile) {
    return this.meta.sides[this.meta.tiles[tile].side ?? 0];
  }

  // The cell at a point of the picture, in px, or null.
  at(left, top) {
    for (let tile = 0; tile < this.meta.tiles.length; tile++) {
      const { axes: [x, y], x0, y0 } = this.meta.tiles[tile], { queries, keys } = this.side(tile);
      const key = index(axis(this.plot, x), left, x0, keys.length);
      const query = key === null ? null : index(axis(this.plot, y), top, y0, queries.length);
      if (query !== null) return { tile, query, key };
    }
    return null;
  }

  has(tile, { query, key }) {
    return query < this.side(tile).queries.length && key < this.side(tile).keys.length;
  }

  // Where a tile has fewer blocks than cells, each stands for several: the block of a cell, and the cells of a block, along one side.
  block(tile, side, i) {
    const { z } = this.plot._fullData[tile], cells = this.side(tile)[side].length;
    const blocks = side === "queries" ? z.length : z[0].length, block = Math.floor((i * blocks) / cells);
    return { block, first: Math.ceil((block * cells) / blocks), last: Math.ceil(((block + 1) * cells) / blocks) - 1 };
  }

  value({ tile, query, key }) {
    const { z, customdata } = this.plot._fullData[tile]; // where what is drawn is not the weight, that is beside it
    return (customdata ?? z)[this.block(tile, "queries", query).block][this.block(tile, "keys", key).block];
  }

  // The look of a cell that holds no weight, as the legend calls it; null for any other.
  look({ tile, query, key }) {
    const { axes, x0, y0 } = this.meta.tiles[tile];
    const middle = (side, i) => { const { first, last } = this.block(tile, side, i); return (first + last) / 2; };
    const x = x0 + middle("keys", key), y = y0 + middle("queries", query);
    const hatch = this.plot._fullData.find((t) => t.legendgroup && t.xaxis === axes[0] && inside(t, x, y));
    return hatch ? hatch.name : null;
  }

  // The large map of the chosen head, where it is drawn as `settled` and reached by keys.
  settled({ head, query, key }) {
    return { tile: Math.max(0, this.meta.tiles.findLastIndex((tile) => tile.head === head)), query, key };
  }

  // A cell as the server knows it: tiles change their places.
  sent({ tile, head = this.meta.tiles[tile].head, query, key }) {
    return { head, query, key };
  }

  words(cell) {
    const { tile, head, query, key } = cell, { queries, keys } = this.side(tile);
    const away = head !== undefined && head !== this.meta.tiles[tile].head;
    const name = away ? `head ${head}` : this.plot._fullData[tile].name;
    const [row, column] = this.side(tile).first;
    const tokens = [this.names(tile, "query", "queries", query, queries, row), this.names(tile, "key", "keys", key, keys, column)];
    return [name, ...tokens, ...(away ? [] : this.numbers(cell)), away ? null : this.look(cell)].filter(Boolean);
  }

  // "query 3 “on”", or where a block stands for several: "queries 2 “sat” … 3 “on”". The texts are those from number `from` on; of
  // a map of a sequence that is never there whole, they are the numbers of blocks: "queries 256–383".
  names(tile, one, several, i, texts, from) {
    const { first, last } = this.block(tile, several, i);
    if (this.side(tile).blocks[several === "queries" ? 0 : 1]) return `${several} ${first === last ? texts[first] : `${texts[first]} … ${texts[last]}`}`;
    if (first === last) return named(one, from + i, texts[i]);
    return `${named(several, from + first, texts[first])} … ${named("", from + last, texts[last]).trim()}`;
  }

  // The weight; of a difference what changed, and from what to what.
  numbers(cell) {
    const value = this.value(cell), { source, head } = this.meta.tiles[cell.tile];
    if (!Number.isFinite(value)) return [];
    const { z } = this.plot._fullData[cell.tile], { queries, keys } = this.side(cell.tile);
    const several = z.length < queries.length || z[0].length < keys.length;
    const largest = several && !this.meta.quantity.startsWith("largest") ? "largest " : "";
    if (source !== "difference") return [`${largest}${this.meta.quantity} ${written(value)}`];
    const sides = ["a", "b"].map((source) => this.meta.tiles.findIndex((tile) => tile.source === source && tile.head === head));
    const from = sides.filter((tile) => tile >= 0).map((tile) => `${this.plot._fullData[tile].name.split(":")[0]} ${written(this.value({ ...cell, tile }))}`);
    return [`${largest}change ${value > 0 ? "+" : ""}${written(value)}`, from.join(", ")];
  }

  tip(cell) {
    const [head, query, key, ...rest] = this.words(cell);
    return [head, `${query} → ${key}`, ...rest].join("\n");
  }

  // The cell to which a key leads from the chosen one; null for any other key, and for Tab beyond the last head and before the first.
  reached(pressed, { tile, head = this.meta.tiles[tile].head, query, key }, shift) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[pressed];
    const { queries, keys } = this.side(tile), { order } = this.meta;
    if (step) return { tile, head, query: within(query + step[0], queries.length), key: within(key + step[1], keys.length) };
    const turn = { PageUp: -1, PageDown: 1, Tab: shift ? -1 : 1 }[pressed];
    let next = order.indexOf(head) + turn;
    if (pressed !== "Tab") next = (next + order.length) % order.length;
    if (!turn || !(next in order)) return null;
    const there = this.meta.tiles.findIndex((tile) => tile.head === order[next]);
    return { tile: there < 0 ? tile : there, head: order[next], query, key };
  }

  // Outlines both cells in every tile at once, and lights up what belongs to the one that is pointed at.
  mark(pen, pointed, chosen) {
    const { font, paper_bgcolor } = this.plot.layout;
    if (pointed) new Pointing(this, pen).draw(pointed);
    this.meta.tiles.forEach(({ axes: [x, y], x0, y0 }, tile) => {
      const across = axis(this.plot, x), down = axis(this.plot, y), { queries, keys } = this.side(tile);
      pen.save();
      pen.beginPath();
      pen.rect(across._offset - 4, down._offset - 4, across._length + 8, down._length + 8);
      pen.clip();
      for (const [cell, halo, line] of [[pointed, 3, 1], [chosen, 5, 2]]) {
        if (!cell || !this.has(tile, cell)) continue;
        const [left, right] = edges(across, x0, cell.key, keys.length);
        const [top, bottom] = edges(down, y0, cell.query, queries.length);
        for (const [style, thick] of [[paper_bgcolor, halo], [font.color, line]]) {
          Object.assign(pen, { strokeStyle: style, lineWidth: thick });
          pen.strokeRect(left, top, right - left, bottom - top);
        }
      }
      pen.restore();
    });
  }
}

// Which of `count` cells on an axis, the first one's centre at `first`, is at this px; null beside them.
function index(axis, px, first, count) {
  if (px < axis._offset || px > axis._offset + axis._length) return null;
  const i = Math.round(axis.p2l(px - axis._offset) - first);
  return 0 <= i && i < count ? i : null;
}

// Whether a point lies in one of a trace's polygons, between which there are gaps: it crosses an odd number of their sides.
function inside({ x, y }, atX, atY) {
  let odd = false;
  for (let i = 0, start = 0; i < x.length; i++) {
    if (Number.isNaN(x[i])) { start = i + 1; continue; }
    const j = i + 1 < x.length && !Number.isNaN(x[i + 1]) ? i + 1 : start;
    if (y[i] > atY !== y[j] > atY && x[i] > atX) odd = !odd; // sides are vertical or level
  }
  return odd;
}

// The px of an outline that lies within cell i of `count`, or around one that is too small, and within the tile: see marks in tiles.py.
function edges(axis, first, i, count) {
  const px = (position) => axis._offset + axis.l2p(position);
  const [low, high] = [px(first - 0.5), px(first + count - 0.5)].sort((p, q) => p - q);
  const side = (high - low) / count, half = side >= 16 ? side / 2 - 2.5 : Math.max(side / 2, 4);
  const centre = Math.max(low + half + 2.5, Math.min(high - half - 2.5, px(first + i)));
  return [centre - half, centre + half];
}
