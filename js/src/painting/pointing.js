// What lights up with the cell under the pointer: in each label the head's value as a bar, in large maps the cell's row, column and
// their names.

import { axisOf, span } from "../pure/axes.js";
import { filled, rooms } from "../pure/bars.js";
import { writtenShort } from "../pure/numbers.js";

export class Pointing {
  constructor(maps, pen) {
    this.maps = maps;
    this.pen = pen;
    const { paper_bgcolor, font } = maps.plot.layout;
    Object.assign(this, { paper: paper_bgcolor, ink: font.color, family: font.family });
    this.rooms = rooms(maps.meta.tiles, (text, font) => {
      pen.font = `${font} ${this.family}`;
      return pen.measureText(text).width;
    });
  }

  draw(cell) {
    this.maps.meta.tiles.forEach((entry, tile) => {
      if (!this.maps.has(tile, cell)) return;
      this.value(entry, this.rooms[tile], this.maps.value({ ...cell, tile }));
      if (entry.named[1]) this.cross(entry, tile, cell);
    });
  }

  /** A label while one points: the name, a bar from zero to the end of the scale, and the value where there is room. */
  value({ label: [x, y, width, height], title: [name, size], source }, { start, written, long, first, line }, value) {
    const { pen, paper, ink } = this;
    const signed = source === "difference";
    const row = y + line * height;
    pen.fillStyle = paper;
    pen.fillRect(x - 1, y, width + 2, height - 4); // the frame below stays
    Object.assign(pen, { fillStyle: ink, textBaseline: "middle", textAlign: "left", font: `bold ${size}px ${this.family}` });
    pen.fillText(name, x, y + first * height);
    pen.font = `13px ${this.family}`;
    if (written) pen.fillText(writtenShort(value, signed), x + start + long + 6, row);
    this.bar(x + start, row - 4, long, 8, filled(value, this.maps.meta.largest, signed));
  }

  /** A track with the part of it, [from, to], that is filled; null where there is no value. */
  bar(x, y, long, high, part) {
    const { pen, ink } = this;
    Object.assign(pen, { fillStyle: ink, globalAlpha: 0.16 });
    pen.fillRect(x, y, long, high);
    pen.globalAlpha = 1;
    if (part) pen.fillRect(x + part[0] * long, y, Math.max((part[1] - part[0]) * long, 1), high);
  }

  /** Bands along the cell's row and column, and their names, which stand even where others were left out. */
  cross({ axes, x0, y0, named: [rowNamed] }, tile, { query, key }) {
    const [across, down] = axes.map((id) => axisOf(this.maps.plot, id));
    const { queries, keys, rows, columns, angle } = this.maps.side(tile);
    const [left, right, from, to] = span(across, x0, key, keys.length);
    const [top, bottom, above, below] = span(down, y0, query, queries.length);
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

  /** A token's name set off by its ground. */
  name(text, x, y, angle, align) {
    const { pen, paper, ink } = this;
    pen.save();
    pen.translate(x, y);
    pen.rotate((angle * Math.PI) / 180);
    Object.assign(pen, { font: `bold 13px ${this.family}`, textBaseline: "middle", textAlign: align, fillStyle: ink });
    const { width } = pen.measureText(text);
    const start = { left: 0, center: -width / 2, right: -width }[align];
    pen.fillRect(start - 4, -9, width + 8, 18);
    pen.fillStyle = paper;
    pen.fillText(text, 0, 0.5);
    pen.restore();
  }
}
