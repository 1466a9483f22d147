// Figures of maps. A spot is a cell, { tile, query, key }, tile an index into meta.tiles.

class Maps {
  keys = "Arrow keys move the chosen cell, Page Up and Page Down go to another head, Escape resets the zoom, or lets go of the chosen cell.";

  constructor(plot) {
    this.plot = plot;
    this.meta = plot.layout.meta;
  }

  // The cell at a point of the picture, in px, or null.
  at(left, top) {
    for (let tile = 0; tile < this.meta.tiles.length; tile++) {
      const { axes: [x, y], x0, y0 } = this.meta.tiles[tile];
      const key = index(axis(this.plot, x), left, x0, this.meta.keys.length);
      const query = key === null ? null : index(axis(this.plot, y), top, y0, this.meta.queries.length);
      if (query !== null) return { tile, query, key };
    }
    return null;
  }

  value({ tile, query, key }) {
    return this.plot._fullData[tile].z[query][key];
  }

  // The look of a cell that holds no weight, as the legend calls it; null for any other.
  look({ tile, query, key }) {
    const { axes, x0, y0 } = this.meta.tiles[tile];
    const hatch = this.plot._fullData.find((t) => t.legendgroup && t.xaxis === axes[0] && inside(t, x0 + key, y0 + query));
    return hatch ? hatch.name : null;
  }

  // The large map of the chosen head, where it is drawn as `settled` and reached by keys.
  settled({ head, query, key }) {
    return { tile: this.meta.tiles.findLastIndex((tile) => tile.head === head), query, key };
  }

  // A cell as the server knows it: tiles change their places.
  sent({ tile, query, key }) {
    return { head: this.meta.tiles[tile].head, query, key };
  }

  words(cell) {
    const value = this.value(cell), look = this.look(cell);
    const weight = Number.isFinite(value) ? `weight ${written(value)}` : null;
    return [
      this.plot._fullData[cell.tile].name,
      named("query", cell.query, this.meta.queries[cell.query]),
      named("key", cell.key, this.meta.keys[cell.key]),
      weight, look,
    ].filter(Boolean);
  }

  tip(cell) {
    const [head, query, key, ...rest] = this.words(cell);
    return [head, `${query} → ${key}`, ...rest].join("\n");
  }

  // The cell to which a key leads from the chosen one; null for any other key.
  reached(pressed, { tile, query, key }) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[pressed];
    const turn = { PageUp: -1, PageDown: 1 }[pressed];
    if (step) return { tile, query: within(query + step[0], this.meta.queries.length), key: within(key + step[1], this.meta.keys.length) };
    if (!turn) return null;
    const strip = this.meta.tiles.length - 2;
    const now = this.meta.tiles.findIndex(({ head }) => head === this.meta.tiles[tile].head);
    return { tile: (Math.min(now, strip - 1) + turn + strip) % strip, query, key };
  }

  // Outlines both cells in every tile at once.
  mark(pen, pointed, chosen) {
    const { font, paper_bgcolor } = this.plot.layout;
    for (const { axes: [x, y], x0, y0 } of this.meta.tiles) {
      const across = axis(this.plot, x), down = axis(this.plot, y);
      pen.save();
      pen.beginPath();
      pen.rect(across._offset - 4, down._offset - 4, across._length + 8, down._length + 8);
      pen.clip();
      for (const [cell, halo, line] of [[pointed, 3, 1], [chosen, 5, 2]]) {
        if (!cell) continue;
        const [left, right] = edges(across, x0, cell.key, this.meta.keys.length);
        const [top, bottom] = edges(down, y0, cell.query, this.meta.queries.length);
        for (const [style, thick] of [[paper_bgcolor, halo], [font.color, line]]) {
          Object.assign(pen, { strokeStyle: style, lineWidth: thick });
          pen.strokeRect(left, top, right - left, bottom - top);
        }
      }
      pen.restore();
    }
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
