// What lights up with the cell under the pointer: in each label the head's value as a bar, in large maps the cell's row, column and
// their names.

class Pointing {
  constructor(maps, pen) {
    this.maps = maps;
    this.pen = pen;
    ({ paper_bgcolor: this.paper, font: { color: this.ink, family: this.family } } = maps.plot.layout);
  }

  draw(cell) {
    this.maps.rooms ??= this.rooms();
    this.maps.meta.tiles.forEach((entry, tile) => {
      if (!this.maps.has(tile, cell)) return;
      this.value(entry, this.maps.rooms[tile], this.maps.value({ ...cell, tile }));
      if (entry.named[1]) this.cross(entry, tile, cell);
    });
  }

  // Per label where its bar lies. Bars of one kind are of one length, so that the eye may compare them, and have the value in figures
  // beside all of them or none.
  rooms() {
    const { tiles } = this.maps.meta, rooms = tiles.map((entry) => this.room(entry));
    return rooms.map((room, tile) => {
      const alike = rooms.filter((_, i) => tiles[i].title[1] === tiles[tile].title[1]), written = alike.every(({ long }) => long >= 16);
      return { ...room, written, long: Math.min(90, ...alike.map(({ long, alone }) => (written ? long : alone))) };
    });
  }

  // Where in a label the bar begins, how long it may be beside the value in figures and alone, and the lines of name and bar.
  room({ label: [, , width, height], title: [name, size], source }) {
    const { pen, family } = this, two = height > 36;
    pen.font = `bold ${size}px ${family}`;
    const start = two ? 0 : pen.measureText(name).width + 8;
    pen.font = `13px ${family}`;
    const figures = pen.measureText(source === "difference" ? "+0.000" : "0.000").width + 6, alone = width - start;
    return { start, long: alone - figures, alone, first: two ? 0.28 : 0.5, line: two ? 0.74 : 0.5 };
  }

  // A label while one points: the name, a bar from zero to the end of the scale, and the value where there is room.
  value({ label: [x, y, width, height], title: [name, size], source }, { start, written, long, first, line }, value) {
    const { pen, paper, ink } = this, signed = source === "difference", row = y + line * height;
    const largest = this.maps.meta.largest[signed ? "change" : "weight"];
    pen.fillStyle = paper;
    pen.fillRect(x - 1, y, width + 2, height - 4); // the frame below stays
    Object.assign(pen, { fillStyle: ink, textBaseline: "middle", textAlign: "left", font: `bold ${size}px ${this.family}` });
    pen.fillText(name, x, y + first * height);
    pen.font = `13px ${this.family}`;
    const text = Number.isFinite(value) ? (signed && value > 0 ? "+" : "") + value.toFixed(3).replace("-", "−") : "n/a";
    if (written) pen.fillText(text, x + start + long + 6, row);
    this.bar(x + start, row - 4, long, 8, signed ? 0.5 + value / largest / 2 : value / largest, signed ? 0.5 : 0);
  }

  // A track, filled from `zero` to `end`, parts of its length; what lies beyond the scale ends with it.
  bar(x, y, long, high, end, zero) {
    const { pen, ink } = this, [from, to] = [zero, Math.min(Math.max(end || 0, 0), 1)].sort((p, q) => p - q);
    Object.assign(pen, { fillStyle: ink, globalAlpha: 0.16 });
    pen.fillRect(x, y, long, high);
    pen.globalAlpha = 1;
    if (Number.isFinite(end)) pen.fillRect(x + from * long, y, Math.max((to - from) * long, 1), high);
  }

  // Bands along the cell's row and column, and their names, which stand even where others were left out.
  cross({ axes: [x, y], x0, y0, named: [rowNamed] }, tile, { query, key }) {
    const { queries, keys, rows, columns, angle } = this.maps.side(tile);
    const across = axis(this.maps.plot, x), down = axis(this.maps.plot, y);
    const [left, right, from, to] = span(across, x0, key, keys.length), [top, bottom, above, below] = span(down, y0, query, queries.length);
    if (right <= from || left >= to || bottom <= above || top >= below) return; // zoomed away
    const { pen, ink } = this;
    Object.assign(pen, { fillStyle: ink, globalAlpha: 0.1 });
    pen.fillRect(from, top, to - from, bottom - top);
    pen.fillRect(left, above, right - left, below - above);
    pen.globalAlpha = 0.6;
    for (const line of [top, bottom]) pen.fillRect(from, line - 0.5, to - from, 1);
    for (const line of [left, right]) pen.fillRect(line - 0.5, above, 1, below - above);
    pen.globalAlpha = 1;
    if (rowNamed) this.name(rows[query], from - 5, (top + bottom) / 2, 0, "right");
    this.name(columns[key], (left + right) / 2, above - (angle ? 6 : 12), angle, angle ? "left" : "center");
  }

  // A token's name set off by its ground.
  name(text, x, y, angle, align) {
    const { pen, paper, ink } = this;
    pen.save();
    pen.translate(x, y);
    pen.rotate((angle * Math.PI) / 180);
    Object.assign(pen, { font: `bold 13px ${this.family}`, textBaseline: "middle", textAlign: align, fillStyle: ink });
    const width = pen.measureText(text).width, start = { left: 0, center: -width / 2, right: -width }[align];
    pen.fillRect(start - 4, -9, width + 8, 18);
    pen.fillStyle = paper;
    pen.fillText(text, 0, 0.5);
    pen.restore();
  }
}

// The px of cell i of `count` along an axis, as far as it is on screen, and those of the tile.
function span(axis, first, i, count) {
  const px = (position) => axis._offset + axis.l2p(position), within = (at) => Math.min(Math.max(at, axis._offset), axis._offset + axis._length);
  const cell = [px(first + i - 0.5), px(first + i + 0.5)].map(within).sort((p, q) => p - q);
  return [...cell, ...[px(first - 0.5), px(first + count - 0.5)].map(within).sort((p, q) => p - q)];
}
