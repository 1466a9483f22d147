// Bundled from js/src/page/live.js by make bundle. Its comments stand there, and changes belong there.
// sha256 b456507d7edf3d4ff5a49e4f0f2c7d321dcafc9c42375b6ab6fcd845e0c37167
// src/pure/numbers.js
var SURE = 7;
function written(value) {
  return withMinus(value !== 0 && Math.abs(value) < 1e-6 ? value.toExponential(2) : fixed(value, 6));
}
function writtenShort(value, signed) {
  if (!Number.isFinite(value)) return "n/a";
  return plus(value, signed) + withMinus(fixed(Number(fixed(value, SURE)), 3));
}
function plus(value, signed = true) {
  return signed && value > 0 ? "+" : "";
}
function counted(number) {
  return number.toLocaleString("en");
}
function short(number) {
  return Number(number.toFixed(3));
}
function fixed(value, decimals) {
  const exact = Math.abs(value).toFixed(100);
  const end = exact.indexOf(".") + 1 + decimals;
  const toEven = /^50*$/.test(exact.slice(end)) && Number(exact[end - 1]) % 2 === 0;
  return toEven ? (value < 0 ? "-" : "") + exact.slice(0, end) : value.toFixed(decimals);
}
function withMinus(text) {
  return text.replace(/-/g, "−");
}

// src/pure/axes.js
function axisOf(plot, id) {
  return plot._fullLayout[`${id[0]}axis${id.slice(1)}`];
}
function within(i, count2) {
  return clamped(i, 0, count2 - 1);
}
function index(axis, px, first, count2) {
  if (px < axis._offset || px > axis._offset + axis._length) return null;
  const i = Math.round(axis.p2l(px - axis._offset) - first);
  return 0 <= i && i < count2 ? i : null;
}
function edges(axis, first, i, count2) {
  const px = pxOn(axis);
  const [low, high] = inOrder(px(first - 0.5), px(first + count2 - 0.5));
  const side = (high - low) / count2;
  const half = side >= 16 ? side / 2 - 2.5 : Math.max(side / 2, 4);
  const centre = Math.max(low + half + 2.5, Math.min(high - half - 2.5, px(first + i)));
  return [centre - half, centre + half];
}
function span(axis, first, i, count2) {
  const px = pxOn(axis);
  const seen = (position) => clamped(px(position), axis._offset, axis._offset + axis._length);
  return [...inOrder(seen(first + i - 0.5), seen(first + i + 0.5)), ...inOrder(seen(first - 0.5), seen(first + count2 - 0.5))];
}
function inSight(range, first, count2) {
  const [low, high] = inOrder(...range).map((end) => Math.round(end - first + 0.5));
  const start = within(low, count2);
  return [start, Math.max(start + 1, Math.min(high, count2))];
}
function spans(axis, ends, gap, start, size) {
  const place = (px2) => size === null ? px2 : start + clamped(Math.round(px2 - start), 0, size);
  const px = ends.map((end) => short(place(axis.c2p(end))));
  const before = Math.floor(gap / 2);
  const all = px.slice(1).map((end, i) => [Math.min(px[i], end) + before, Math.max(px[i], end) + before - gap]);
  return all.filter(([from, to]) => from < to && to > 0 && from < short(axis._length));
}
function pxOn(axis) {
  return (position) => axis._offset + axis.l2p(position);
}
function clamped(value, least, most) {
  return Math.min(Math.max(value, least), most);
}
function inOrder(...numbers) {
  return numbers.sort((p, q) => p - q);
}

// src/painting/twice.js
function twice(pen, { paper_bgcolor, font }, widths, draw) {
  [paper_bgcolor, font.color].forEach((strokeStyle, i) => {
    Object.assign(pen, { strokeStyle, lineWidth: widths[i] });
    draw();
  });
}

// src/painting/columns.js
function paintColumns(pen, { plot, meta }, pointed) {
  if (!pointed || pointed.panel === void 0) return;
  const { axes, rows } = meta.panels[pointed.panel];
  const [x, y] = axes.map((id) => axisOf(plot, id));
  const [left, right] = edges(x, 0, pointed.key, meta.keys.length);
  const [top, bottom] = edges(y, 0, pointed.row, rows.length);
  twice(pen, plot.layout, [3, 1], () => pen.strokeRect(left, top, right - left, bottom - top));
}

// src/pure/keys.js
var ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
var PAGES = { PageUp: -1, PageDown: 1 };
function cellReached(pressed, { query, key }, queries, keys) {
  const step = ARROWS[pressed];
  return step ? { query: within(query + step[0], queries), key: within(key + step[1], keys) } : null;
}
function headReached(pressed, shift, head, order) {
  const turn = { ...PAGES, Tab: shift ? -1 : 1 }[pressed];
  if (!turn) return void 0;
  const next = order.indexOf(head) + turn;
  return order[pressed === "Tab" ? next : (next + order.length) % order.length];
}
function panelReached(pressed, panel, heads) {
  const turn = PAGES[pressed];
  return turn && heads > 1 ? (Math.min(panel, heads - 1) + turn + heads) % heads : null;
}
function tokenReached(pressed, { query, key }, queries, keys) {
  const side = query === null && key !== null ? "key" : "query";
  const i = (side === "key" ? key : query) ?? 0;
  const to = { ArrowUp: side, ArrowDown: side, ArrowLeft: "query", ArrowRight: "key" }[pressed];
  if (!to) return null;
  const next = i + ARROWS[pressed][0];
  return { query: null, key: null, [to]: within(next, to === "query" ? queries : keys) };
}
function placeReached(pressed, i, count2) {
  const next = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: count2 - 1 }[pressed];
  return next === void 0 ? null : within(next, count2);
}

// src/pure/names.js
var STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3];
function named(kind, i, text) {
  return text === String(i) ? `${kind} ${i}` : `${kind} ${i} “${text}”`;
}
function niceStep(least) {
  return STEPS.find((step) => step >= least - 1e-9);
}
function ticks(texts, pitch, cell) {
  const step = niceStep(pitch / cell);
  const tickvals = texts.map((_, i) => i).filter((i) => i % step === 0);
  return { tickvals, ticktext: tickvals.map((i) => texts[i]) };
}

// src/pure/lines.js
var SIDES = ["query", "key"];
var PLURAL = { query: "queries", key: "keys" };
var NEAR = 6;
var NODE = 8;
var Lines = class {
  role = "attention lines";
  keys = "Up and down move to another token in focus, left to the queries, right to the keys, Page Up and Page Down go to another head, Escape lets go of it.";
  constructor(plot) {
    this.plot = plot;
    this.meta = plot.layout.meta;
    this.panels = plot._fullData.filter((trace) => trace.meta === "lines").map(({ name, customdata }) => ({ name, lines: [...customdata] }));
  }
  /** The token, or else the line, at a point of the picture, in px; null beside them. */
  at(left, top) {
    return this.tokenAt(left, top) ?? this.lineAt(left, top);
  }
  tokenAt(left, top) {
    for (let panel = 0; panel < this.panels.length; panel++) {
      for (const side of SIDES) {
        const { x, y, pitch, name } = this.meta.panels[panel][side];
        const outwards = side === "query" ? x - left : left - x;
        const i = Math.round((top - y) / pitch);
        if (-NODE <= outwards && outwards <= name && 0 <= i && i < this.tokens(side).length)
          return { panel, query: null, key: null, [side]: i };
      }
    }
    return null;
  }
  lineAt(left, top) {
    let nearest = null;
    let least = NEAR;
    this.panels.forEach(({ lines }, panel) => {
      const [from, to] = SIDES.map((side) => this.meta.panels[panel][side].x);
      if (left <= from || to <= left) return;
      for (const [query, key] of lines) {
        const [start, end] = this.ends(panel, query, key);
        const away = top - start[1] - (left - from) / (to - from) * (end[1] - start[1]);
        const distance = Math.abs(away) * ((to - from) / Math.hypot(to - from, end[1] - start[1]));
        if (distance < least) [nearest, least] = [{ panel, query, key }, distance];
      }
    });
    return nearest;
  }
  tokens(side) {
    return side === "query" ? this.meta.queries : this.meta.keys;
  }
  /** [x, y] of a line's ends in px. */
  ends(panel, query, key) {
    return [query, key].map((i, j) => {
      const { x, y, pitch } = this.meta.panels[panel][SIDES[j]];
      return [x, y + i * pitch];
    });
  }
  /** The lines of a token in one panel, or the one line, strongest first. */
  of({ query, key }, panel) {
    const its = ([q, k]) => (query === null || q === query) && (key === null || k === key);
    return this.panels[panel].lines.filter(its).sort((a, b) => b[2] - a[2]);
  }
  /** The chosen token, which the figure shows. */
  settled({ head, query, key }) {
    const panel = this.meta.panels.findIndex((entry) => entry.head === head);
    return { panel: Math.max(0, panel), query, key, settled: true };
  }
  /** As the server knows it: a token is chosen in all heads at once. */
  sent({ panel, query, key, turned }) {
    const one = turned || query !== null && key !== null;
    return { head: one ? this.meta.panels[panel].head : null, query, key };
  }
  words(spot) {
    const tokens = SIDES.filter((side) => spot[side] !== null).map((side) => this.token(side, spot[side]));
    if (tokens.length === 0) return ["no token in focus"];
    const lines = this.of(spot, spot.panel);
    const reads = spot.key === null ? "reads" : "is read by";
    const weights = tokens.length === 2 ? lines.map(([, , weight]) => `${this.meta.quantity} ${written(weight)}`) : lines.slice(0, 3).map(([query, key, weight]) => `${reads} ${this.other(spot, query, key)}: ${written(weight)}`);
    return [this.panels[spot.panel].name, ...tokens, ...weights.length ? weights : ["no line"]];
  }
  other(spot, query, key) {
    return spot.key === null ? this.token("key", key) : this.token("query", query);
  }
  token(side, i) {
    const which = SIDES.indexOf(side);
    const text = this.tokens(side)[i];
    return this.meta.blocks[which] ? `${PLURAL[side]} ${text}` : named(side, this.meta.first[which] + i, text);
  }
  tip(spot) {
    return this.words(spot).join("\n");
  }
  /** The spot to which a key leads from the chosen one; null for any other key. */
  reached(pressed, { panel, query, key }) {
    const token = tokenReached(pressed, { query, key }, this.meta.queries.length, this.meta.keys.length);
    if (token) return { panel, ...token };
    const next = panelReached(pressed, panel, this.meta.panels.filter(({ head }) => head !== null).length);
    return next === null ? null : { panel: next, query, key, turned: true };
  }
};

// src/painting/lines.js
function paintLines(pen, lines, pointed, chosen) {
  const spot = pointed ?? (chosen.settled ? null : chosen);
  if (!spot || spot.query === null && spot.key === null) return;
  const look = lines.plot.layout;
  const one = spot.query !== null && spot.key !== null;
  for (const panel of one ? [spot.panel] : lines.panels.keys()) {
    if (!one) dim(pen, lines, panel);
    const weakestFirst = lines.of(spot, panel).reverse();
    for (const [query, key, , width] of weakestFirst) line(pen, look, lines.ends(panel, query, key), width);
    for (const side of SIDES) if (spot[side] !== null) ring(pen, look, lines.meta.panels[panel][side], spot[side]);
  }
}
function dim(pen, lines, panel) {
  const [query, key] = SIDES.map((side) => lines.meta.panels[panel][side]);
  const last = ({ y, pitch }, side) => y + (lines.tokens(side).length - 1) * pitch;
  const top = Math.min(query.y, key.y) - 6;
  const bottom = Math.max(last(query, "query"), last(key, "key")) + 6;
  Object.assign(pen, { fillStyle: lines.plot.layout.paper_bgcolor, globalAlpha: 0.85 });
  pen.fillRect(query.x + 3, top, key.x - query.x - 6, bottom - top);
  pen.globalAlpha = 1;
}
function line(pen, look, [start, end], width) {
  twice(pen, look, [width + 3, width], () => {
    pen.beginPath();
    pen.moveTo(...start);
    pen.lineTo(...end);
    pen.stroke();
  });
}
function ring(pen, look, { x, y, pitch }, i) {
  twice(pen, look, [5, 2.5], () => {
    pen.beginPath();
    pen.arc(x, y + i * pitch, 6, 0, 2 * Math.PI);
    pen.stroke();
  });
}

// src/pure/bars.js
var LONGEST = 90;
var SHORTEST = 16;
function rooms(tiles, measure) {
  const all = tiles.map((entry) => room(entry, measure));
  return all.map((own, tile) => {
    const alike = all.filter((_, i) => tiles[i].title[1] === tiles[tile].title[1]);
    const written2 = alike.every(({ long }) => long >= SHORTEST);
    return { ...own, written: written2, long: Math.min(LONGEST, ...alike.map(({ long, alone }) => written2 ? long : alone)) };
  });
}
function room({ label: [, , width, height], title: [name, size], source }, measure) {
  const two = height > 36;
  const start = two ? 0 : measure(name, `bold ${size}px`) + 8;
  const figures = measure(source === "difference" ? "+0.000" : "0.000", "13px") + 6;
  const alone = width - start;
  return { start, long: alone - figures, alone, first: two ? 0.28 : 0.5, line: two ? 0.74 : 0.5 };
}
function filled(value, largest, signed) {
  const end = signed ? 0.5 + value / largest.change / 2 : value / largest.weight;
  const zero = signed ? 0.5 : 0;
  return Number.isFinite(end) ? [zero, Math.min(Math.max(end, 0), 1)].sort((p, q) => p - q) : null;
}

// src/painting/pointing.js
var Pointing = class {
  constructor(maps, pen) {
    this.maps = maps;
    this.pen = pen;
    const { paper_bgcolor, font } = maps.plot.layout;
    Object.assign(this, { paper: paper_bgcolor, ink: font.color, family: font.family });
    this.rooms = rooms(maps.meta.tiles, (text, font2) => {
      pen.font = `${font2} ${this.family}`;
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
  value({ label: [x, y, width, height], title: [name, size], source }, { start, written: written2, long, first, line: line2 }, value) {
    const { pen, paper, ink } = this;
    const signed = source === "difference";
    const row = y + line2 * height;
    pen.fillStyle = paper;
    pen.fillRect(x - 1, y, width + 2, height - 4);
    Object.assign(pen, { fillStyle: ink, textBaseline: "middle", textAlign: "left", font: `bold ${size}px ${this.family}` });
    pen.fillText(name, x, y + first * height);
    pen.font = `13px ${this.family}`;
    if (written2) pen.fillText(writtenShort(value, signed), x + start + long + 6, row);
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
    if (right <= from || left >= to || bottom <= above || top >= below) return;
    const { pen, ink } = this;
    Object.assign(pen, { fillStyle: ink, globalAlpha: 0.1 });
    pen.fillRect(from, top, to - from, bottom - top);
    pen.fillRect(left, above, right - left, below - above);
    pen.globalAlpha = 0.6;
    for (const line2 of [top, bottom]) pen.fillRect(from, line2 - 0.5, to - from, 1);
    for (const line2 of [left, right]) pen.fillRect(line2 - 0.5, above, 1, below - above);
    pen.globalAlpha = 1;
    if (rowNamed) this.name(rows[query], from - 5, (top + bottom) / 2, 0, "right");
    this.name(columns[key], (left + right) / 2, above - (angle ? 6 : 12), angle, angle ? "left" : "center");
  }
  /** A token's name set off by its ground. */
  name(text, x, y, angle, align) {
    const { pen, paper, ink } = this;
    pen.save();
    pen.translate(x, y);
    pen.rotate(angle * Math.PI / 180);
    Object.assign(pen, { font: `bold 13px ${this.family}`, textBaseline: "middle", textAlign: align, fillStyle: ink });
    const { width } = pen.measureText(text);
    const start = { left: 0, center: -width / 2, right: -width }[align];
    pen.fillRect(start - 4, -9, width + 8, 18);
    pen.fillStyle = paper;
    pen.fillText(text, 0, 0.5);
    pen.restore();
  }
};

// src/painting/maps.js
var pointings = /* @__PURE__ */ new WeakMap();
function paintMaps(pen, maps, pointed, chosen) {
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
    const cells2 = [
      [pointed, [3, 1]],
      [chosen, [5, 2]]
    ];
    for (const [cell, widths] of cells2) {
      if (!cell || !maps.has(tile, cell)) continue;
      const [left, right] = edges(across, x0, cell.key, keys.length);
      const [top, bottom] = edges(down, y0, cell.query, queries.length);
      twice(pen, maps.plot.layout, widths, () => pen.strokeRect(left, top, right - left, bottom - top));
    }
    pen.restore();
  });
}

// src/pure/choices.js
function unanswered(choices, answered) {
  return choices.filter(({ serial }) => serial > answered);
}
function withChoice(choices, choice) {
  return [...choices.filter(({ pressed }) => pressed), choice];
}

// src/pure/columns.js
var Columns = class {
  role = "decoding, token by token";
  keys = "Left and right arrow keys go a token back and on, Home and End to the first and the last; a click on a column goes to its token.";
  constructor(plot) {
    this.plot = plot;
    this.meta = plot.layout.meta;
  }
  /** The cell at a point of the picture, in px, or null. */
  at(left, top) {
    for (let panel = 0; panel < this.meta.panels.length; panel++) {
      const { axes, rows } = this.meta.panels[panel];
      const [x, y] = axes.map((id) => axisOf(this.plot, id));
      const key = index(x, left, 0, this.meta.keys.length);
      const row = index(y, top, 0, rows.length);
      if (key !== null && row !== null) return { panel, row, key };
    }
    return null;
  }
  settled({ key }) {
    return { query: null, key };
  }
  /** As the server knows it: a column that is still to come is the last token's. */
  sent({ key }) {
    return { head: null, query: null, key: within(key, this.meta.tokens) };
  }
  words({ panel, row, key }) {
    const token = named("token", key, this.meta.keys[key]);
    if (panel === void 0) return [token];
    const { rows, name, quantity, blanks } = this.meta.panels[panel];
    const value = this.plot._fullData.filter((trace) => trace.type === "heatmap")[panel].z[row][key];
    return [`${rows[row]}, ${name}`, token, Number.isFinite(value) ? `${quantity} ${written(value)}` : blanks[key]];
  }
  tip(spot) {
    return this.words(spot).join("\n");
  }
  /** The token to which a key leads from the chosen one; null for any other key. */
  reached(pressed, { key }) {
    const next = placeReached(pressed, key, this.meta.tokens);
    return next === null ? null : { query: null, key: next };
  }
};

// src/pure/blocks.js
function blockOf(i, cells2, blocks) {
  const block = Math.floor(i * blocks / cells2);
  return { block, first: Math.ceil(block * cells2 / blocks), last: Math.ceil((block + 1) * cells2 / blocks) - 1 };
}

// src/pure/polygons.js
function inside({ x, y }, atX, atY) {
  let odd = false;
  let start = 0;
  for (let i = 0; i < x.length; i++) {
    if (Number.isNaN(x[i])) {
      start = i + 1;
      continue;
    }
    const j = i + 1 < x.length && !Number.isNaN(x[i + 1]) ? i + 1 : start;
    if (y[i] > atY !== y[j] > atY && x[i] > atX) odd = !odd;
  }
  return odd;
}

// src/pure/maps.js
var Maps = class {
  role = "attention maps";
  keys = "Arrow keys move the chosen cell, Enter is a click on it, Tab goes to the next head and Shift Tab back, Escape resets the zoom, or lets go of the chosen cell.";
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
    const { z, customdata } = this.plot._fullData[tile];
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
    const hatch2 = this.plot._fullData.find((trace) => trace.legendgroup && trace.xaxis === axes[0] && inside(trace, x, y));
    return hatch2 ? hatch2.name : null;
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
    const away = head !== void 0 && head !== this.meta.tiles[tile].head;
    const name = away ? `head ${head}` : this.plot._fullData[tile].name;
    const tokens = [
      this.names(tile, "query", "queries", query, queries, first[0]),
      this.names(tile, "key", "keys", key, keys, first[1])
    ];
    return [name, ...tokens, ...away ? [] : this.numbers(cell), away ? null : this.look(cell)].filter(Boolean);
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
    const from = sides.filter((tile) => tile >= 0).map((tile) => `${this.plot._fullData[tile].name.split(":")[0]} ${written(this.value({ ...cell, tile }))}`);
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
    if (next === void 0) return null;
    const there = this.meta.tiles.findIndex((entry) => entry.head === next);
    return { tile: there < 0 ? tile : there, head: next, query, key };
  }
};

// src/pure/places.js
var LEAST = 320;
function usableWidth(px) {
  return Math.max(LEAST, Math.floor(px / 8) * 8);
}
function beside(pointer, size, all) {
  return pointer + 16 + size <= all ? pointer + 16 : Math.max(0, pointer - 16 - size);
}

// src/pure/ids.js
function stable(svg, random) {
  const ids = new RegExp(`(id="|#)([a-z]+-?)${random}`, "g");
  const plain = svg.replace(/url\('?[^#)]*(#[^)']*)'?\)/g, "url($1)").replace(ids, "$1$2");
  return plain.replace(/(id="|url\(#)/g, `$1p${digest(plain)}-`);
}
function digest(text) {
  let sum = 2166136261;
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 16777619);
  return (sum >>> 0).toString(16);
}

// src/pure/sizes.js
var PER_INCH = { px: 96, mm: 25.4, in: 1 };
var MOST_CELLS = 4e4;
var MOST_PIXELS = 1e8;
var TooLarge = class extends Error {
};
function pixelsOf([width, unit], layout, scale) {
  const height = width * layout.height / layout.width;
  return [width, height].map((side) => Math.round(side / PER_INCH[unit] * PER_INCH.px * scale));
}
function perMetre(scale) {
  return scale * PER_INCH.px / 0.0254;
}
function checkPixels([across, down]) {
  if (across * down <= MOST_PIXELS) return;
  const most = `${counted(MOST_PIXELS)} in all`;
  throw new TooLarge(
    `holds no ${counted(across)} × ${counted(down)} px, ${most}: choose a smaller scale or size, or SVG or PDF.`
  );
}
function oneByOne(cells2, format) {
  if (cells2 > MOST_CELLS && format !== "png")
    throw new TooLarge(
      `holds no ${counted(cells2)} cells, ${counted(MOST_CELLS)} at most: choose fewer heads, or one alone, or PNG at 4×.`
    );
  return cells2 <= MOST_CELLS;
}

// src/picture/elements.js
var IN_SVG = "http://www.w3.org/2000/svg";
function element(name, attributes) {
  const found = document.createElementNS(IN_SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) found.setAttribute(attribute, value);
  return found;
}

// src/picture/cells.js
async function cells(plot, image, under) {
  const { trace, x, y } = image.__data__;
  const { xaxis, yaxis } = plot._fullLayout._plots[trace.xaxis + trace.yaxis];
  const [left, top, width, height] = ["x", "y", "width", "height"].map((name) => Number(image.getAttribute(name)));
  const bitmap = await pixels(image.getAttribute("href"));
  const stretched = image.hasAttribute("style");
  const columns = spans(xaxis, x, trace.xgap, left, stretched ? null : width);
  const rows = spans(yaxis, y, trace.ygap, top, stretched ? null : height);
  const found = element("g", { class: "cells", "shape-rendering": "crispEdges" });
  const reach = stretched ? under : 0;
  for (const [y0, y1] of rows)
    for (const [x0, x1] of columns) {
      const column = Math.floor(((x0 + x1) / 2 - left) / width * bitmap.width);
      const row = Math.floor(((y0 + y1) / 2 - top) / height * bitmap.height);
      const [red, green, blue, there] = bitmap.data.subarray(4 * (row * bitmap.width + column));
      if (!there) continue;
      const fill = `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
      const right = Math.min(x1 + reach, columns.at(-1)[1]);
      const bottom = Math.min(y1 + reach, rows.at(-1)[1]);
      found.append(element("rect", { x: x0, y: y0, width: short(right - x0), height: short(bottom - y0), fill }));
    }
  return found;
}
async function pixels(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
  pen.drawImage(image, 0, 0);
  return pen.getImageData(0, 0, image.width, image.height);
}

// src/picture/fonts.js
var fonts = /* @__PURE__ */ new Map();
async function webFont(families) {
  const family = bare(families.split(",")[0]);
  await document.fonts.load(`14px "${family}"`);
  if (!fonts.has(family)) fonts.set(family, await fontFaces(family));
  return fonts.get(family);
}
async function fontFaces(family) {
  const sheets = [...document.styleSheets].filter(({ href }) => !href || href.startsWith(location.origin));
  const faces = sheets.flatMap((sheet) => [...sheet.cssRules].map((rule) => [rule, sheet.href ?? document.baseURI])).filter(
    ([rule]) => rule instanceof CSSFontFaceRule && bare(rule.style.fontFamily) === family && rule.style.fontStyle !== "italic"
  );
  const rules = faces.map(async ([{ style }, base]) => {
    const url = new URL(/url\(["']?(.*?)["']?\)/.exec(style.src)[1], base);
    const file = await dataUrl(await (await fetch(url)).blob());
    return `@font-face { font-family: "${family}"; font-weight: ${style.fontWeight || "normal"}; src: url(${file}); }`;
  });
  return rules.length ? `<style>${(await Promise.all(rules)).join(" ")}</style>` : "";
}
function bare(name) {
  return name.replace(/["']/g, "").trim();
}
function dataUrl(blob) {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });
}

// src/pure/hatches.js
function strokes(one, { x, y, width, height }, step, scale) {
  const right = x + width;
  const bottom = y + height;
  const above = y - step;
  const below = bottom + step;
  const lines = (from, to, line2) => {
    const [first, last] = [Math.floor(from / step), Math.ceil(to / step)];
    return Array.from({ length: last - first + 1 }, (_, i) => line2((first + i) * step)).join("");
  };
  if (one.tag === "circle") {
    const left = (Math.floor(x / step) - 0.5) * step;
    return {
      d: lines(above, bottom, (at) => `M${left},${at + step / 2}H${right + step}`),
      stroke: one.fill,
      "stroke-width": 2 * one.r * scale,
      "stroke-dasharray": `0 ${step}`,
      "stroke-linecap": "round"
    };
  }
  const rising = lines(x + y, right + bottom, (sum) => `M${sum - above},${above}L${sum - below},${below}`);
  const crossed = one.d.split("M").length > 4;
  const falling = crossed ? lines(x - bottom, right - y, (gap) => `M${gap + above},${above}L${gap + below},${below}`) : "";
  return { d: rising + falling, stroke: one.stroke, "stroke-width": Number.parseFloat(one["stroke-width"]) * scale };
}

// src/picture/hatches.js
function hatch(path, name) {
  const pattern = document.getElementById(/#([^"')]+)/.exec(path.style.fill)[1]);
  const [ground, one] = pattern.children;
  const scale = /scale\((.*)\)/.exec(pattern.getAttribute("patternTransform"))?.[1] ?? 1;
  const step = Number.parseFloat(pattern.getAttribute("width")) * scale;
  const fill = ground.getAttribute("fill");
  const under = { fill, opacity: ground.getAttribute("fill-opacity"), stroke: fill, "stroke-width": 0.5 };
  const area = element("g", { transform: path.getAttribute("transform") ?? "" });
  for (const d of path.getAttribute("d").split(/(?=M)/)) area.append(element("path", { d, ...under }));
  path.replaceWith(area);
  const polygons = [...area.children];
  const boxes = polygons.map((polygon) => polygon.getBBox());
  polygons.forEach((polygon, i) => {
    const id = `${name}-${i}`;
    const clip = element("clipPath", { id });
    const cut = element("g", { "clip-path": `url(#${id})` });
    clip.append(element("path", { d: polygon.getAttribute("d") }));
    cut.append(element("path", { fill: "none", ...strokes(described(one), boxes[i], step, scale) }));
    polygon.after(clip, cut);
  });
}
function described(one) {
  return { ...Object.fromEntries([...one.attributes].map(({ name, value }) => [name, value])), tag: one.tagName };
}

// src/pure/png.js
var HEADER = 33;
function density(perMetre2) {
  const chunk = new DataView(new ArrayBuffer(21));
  [9, 1883789683, perMetre2, perMetre2].forEach((number, i) => {
    chunk.setUint32(4 * i, number);
  });
  chunk.setUint8(16, 1);
  chunk.setUint32(17, crc32(new Uint8Array(chunk.buffer, 4, 13)));
  return chunk;
}
function crc32(bytes) {
  let check = ~0;
  for (const byte of bytes) {
    check ^= byte;
    for (let bit = 0; bit < 8; bit++) check = check & 1 ? check >>> 1 ^ 3988292384 : check >>> 1;
  }
  return ~check;
}

// src/picture/raster.js
async function raster(svg, width, height, perMetre2) {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  await image.decode();
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").drawImage(image, 0, 0, width, height);
  URL.revokeObjectURL(image.src);
  const png = await canvas.convertToBlob({ type: "image/png" });
  return new Blob([png.slice(0, HEADER), density(Math.round(perMetre2)), png.slice(HEADER)], { type: png.type });
}

// src/picture/picture.js
async function pictureOf(Plotly, figure, format, { scale = 1, size = [figure.layout.width, "px"] } = {}) {
  const [width, unit] = size;
  const height = width * figure.layout.height / figure.layout.width;
  const pixels2 = pixelsOf(size, figure.layout, scale);
  if (format === "png") checkPixels(pixels2);
  const font = await webFont(figure.layout.font.family);
  const suffix = unit === "px" ? "" : unit;
  const text = (await drawn(Plotly, figure, format)).replace(/ width="\S*" height="\S*"/, ` width="${short(width)}${suffix}" height="${short(height)}${suffix}"`).replace(">", `>${font}`);
  const svg = new Blob([text], { type: "image/svg+xml" });
  return format === "png" ? raster(svg, ...pixels2, perMetre(scale)) : svg;
}
async function drawn(Plotly, { data, layout }, format) {
  const seen = data.filter(({ meta }) => meta !== "lines");
  const traces = seen.map((trace, i) => ({ ...trace, uid: `${i}`, ...trace.meta === "mark" && { opacity: 1 } }));
  const plot = document.body.appendChild(document.createElement("div"));
  plot.style.cssText = "position: absolute; left: -10000px; top: 0";
  try {
    await Plotly.newPlot(plot, traces, { ...structuredClone(layout), hovermode: false }, { staticPlot: true });
    const maps = [...plot.querySelectorAll(".hm image")];
    const count2 = maps.reduce((sum, { __data__: { z } }) => sum + z.length * z[0].length, 0);
    if (oneByOne(count2, format)) for (const map of maps) map.replaceWith(await cells(plot, map, format === "pdf" ? 0.5 : 0));
    const hatched = format === "pdf" ? plot.querySelectorAll(".pattern_filled") : [];
    for (const [i, path] of hatched.entries()) hatch(path, `hatch-${i}`);
    for (const line2 of plot.querySelectorAll(".crisp")) line2.setAttribute("shape-rendering", "crispEdges");
    if (format === "pdf")
      for (const crisp of plot.querySelectorAll("[shape-rendering]")) crisp.removeAttribute("shape-rendering");
    for (const styled of plot.querySelectorAll("svg [style]")) {
      const style = styled.getAttribute("style");
      styled.removeAttribute("style");
      styled.setAttribute("style", style);
    }
    return stable(Plotly.Snapshot.toSVG(plot, "svg", 1), plot._fullLayout._uid);
  } finally {
    Plotly.purge(plot);
    plot.remove();
  }
}

// src/page/download.js
var KEPT = 6e4;
async function download({ data, layout }, { format, name, scale, size }) {
  try {
    const file = await pictureOf(window.Plotly, { data, layout }, format, { scale, size: size ?? void 0 });
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: `${name}.${format}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), KEPT);
    return { words: `Saved ${link.download}.`, matters: false };
  } catch (error) {
    return {
      words: `Not saved: ${error instanceof TooLarge ? `${format.toUpperCase()} ` : ""}${error.message}`,
      matters: true
    };
  }
}

// src/page/plotly.js
async function untilPlotly() {
  while (!window.Plotly) await new Promise((resolve) => setTimeout(resolve, 20));
}

// src/page/live_picture.js
var CONFIG = { displayModeBar: false, doubleClick: false, showTips: false };
var TWICE = 400;
var HELD = 80;
var PATIENCE = 1500;
var BOX = ".st-key-overview_box";
var SETTLED = 150;
var KINDS = {
  maps: { Kind: Maps, paint: paintMaps },
  lines: { Kind: Lines, paint: paintLines },
  decoding: { Kind: Columns, paint: paintColumns }
};
var count = 0;
var LivePicture = class {
  constructor(root) {
    const find = (selector) => root.querySelector(selector);
    this.frame = find(".mha-live");
    this.plot = find(".mha-maps");
    this.canvas = find(".mha-marks");
    this.tip = find(".mha-tip");
    this.button = find(".mha-reset");
    this.status = find("[role=status]");
    this.keys = find(".mha-keys");
    count += 1;
    this.keys.id = `mha-keys-${count}`;
    this.plot.setAttribute("aria-describedby", `mha-keys-${count}`);
    this.kind = null;
    this.chosen = null;
    this.pointed = null;
    this.revealed = null;
    this.choices = [];
    this.gone = new AbortController();
    this.listen(this.gone.signal);
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(this.frame);
  }
  close() {
    this.gone.abort();
    this.observer.disconnect();
    clearTimeout(this.resizing);
    clearTimeout(this.sending);
    this.next = null;
    this.kind = null;
    Promise.resolve(this.drawing).finally(() => this.drawn && window.Plotly.purge(this.plot));
  }
  // Drawing ---------------------------------------------------------------------------------------------------------
  show({ figure, alt, save, answered, zooms }) {
    this.next = figure;
    this.zooms = zooms;
    this.choices = unanswered(this.choices, answered);
    this.serial = Math.max(this.serial ?? 0, answered);
    this.saving = save;
    this.plot.setAttribute("aria-label", alt);
    this.drawing ??= this.draw().finally(() => {
      this.drawing = null;
    });
  }
  async draw() {
    await untilPlotly();
    if (!this.drawn) await this.rightWidth();
    while (this.next) {
      const { data, layout } = this.next;
      const waiting = this.choices.length && this.meta.kind === layout.meta.kind && this.kind.sent(this.chosen);
      this.next = null;
      this.figure = { data, layout };
      this.meta = layout.meta;
      this.zoomable = Object.keys(layout).filter(
        (name) => /^[xy]axis/.test(name) && !layout[name].fixedrange && !layout[name].matches
      );
      this.ranges = this.zoomable.map((axis) => [...layout[axis].range]);
      this.given = Object.keys(layout).filter((name) => /^[xy]axis/.test(name)).map((name) => [name, [...layout[name].range]]);
      for (const trace of data) if (trace.meta === "mark") trace.opacity = 0;
      const zoomed = this.drawn && layout.uirevision === this.revision;
      this.revision = layout.uirevision;
      this.name(layout, (axis) => (zoomed ? this.plot._fullLayout : layout)[axis].range);
      this.kind = null;
      await this.react();
      if (!this.drawn) this.plot.on("plotly_relayouting", () => this.marks()).on("plotly_relayout", () => this.rename());
      this.drawn = true;
      if (this.gone.signal.aborted) return;
      const { Kind, paint } = KINDS[layout.meta.kind] ?? KINDS.maps;
      this.kind = new Kind(this.plot);
      this.paint = paint;
      this.keys.textContent = this.kind.keys;
      this.plot.setAttribute("aria-roledescription", this.kind.role);
      this.plot.dataset.kind = layout.meta.kind ?? "maps";
      this.chosen = this.kind.settled(waiting || layout.meta.chosen);
      this.zoomed();
      this.point(this.over && this.at(this.over), this.over);
      this.reveal();
    }
    this.save();
  }
  // In the box of all layers, brings the chosen tile into sight when it is another one, and keeps it there while the page around it is
  // still being drawn; else the box stays as somebody scrolled it.
  reveal() {
    const box = this.frame.closest(BOX);
    const { tile } = this.chosen;
    if (!box || tile === this.revealed) return;
    this.revealed = tile;
    const until = performance.now() + PATIENCE;
    const touched = new AbortController();
    for (const hand of ["wheel", "pointerdown", "keydown"])
      box.addEventListener(hand, () => touched.abort(), { capture: true, passive: true, signal: touched.signal });
    const bring = () => {
      if (touched.signal.aborted || this.gone.signal.aborted || this.revealed !== tile) return;
      if (!this.kind) return requestAnimationFrame(bring);
      const { axes, y0 } = this.meta.tiles[tile];
      const down = axisOf(this.plot, axes[1]);
      const [first, last] = [0, this.kind.side(tile).queries.length - 1].map((i) => down._offset + down.l2p(y0 + i));
      const seen = box.getBoundingClientRect();
      const away = this.plot.getBoundingClientRect().top + (first + last) / 2 - (seen.top + seen.height / 2);
      if (Math.abs(away) > (seen.height - Math.abs(last - first)) / 2) box.scrollTop += away;
      if (performance.now() < until) requestAnimationFrame(bring);
      else touched.abort();
    };
    bring();
  }
  // Saves what is on screen, or another figure, where the server asks for it with a serial that is new since the picture is here.
  async save() {
    const before = this.saved;
    const { serial = 0, figure, ...asked } = this.saving ?? {};
    this.saved = serial;
    if (before === void 0 || serial === 0 || serial === before) return;
    const { words, matters } = await download(figure ?? this.plot, asked);
    this.say(words, matters);
  }
  // To who hears the page, and where it `matters` to all.
  say(words, matters = false) {
    this.status.textContent = words;
    this.status.classList.toggle("mha-unseen", !matters);
  }
  react() {
    const { data, layout } = this.figure;
    for (const [name, range] of this.given) layout[name] = { ...layout[name], range: [...range] };
    const lies = ({ coloraxis, coloraxis9 }) => (coloraxis9 ?? coloraxis)?.colorbar?.orientation === "h";
    if (this.drawn && lies(layout) !== lies(this.plot._fullLayout))
      for (const bar of this.plot.querySelectorAll(".colorbar")) bar.remove();
    return window.Plotly.react(this.plot, data, { ...layout, hovermode: false }, CONFIG);
  }
  // A first picture made for another width would be replaced at once: rather wait for its successor.
  async rightWidth() {
    const started = performance.now();
    while (this.next && this.next.layout.width !== this.width() && performance.now() - started < PATIENCE) {
      this.reportWidth();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  width() {
    return usableWidth(this.frame.clientWidth);
  }
  reportWidth() {
    const width = this.width();
    if (!this.frame.clientWidth || width === this.reported) return;
    this.reported = width;
    this.send.setStateValue("width", width);
  }
  resized() {
    clearTimeout(this.resizing);
    this.resizing = setTimeout(() => this.drawn && this.figure.layout.width !== this.width() && this.reportWidth(), SETTLED);
  }
  // Zoom ------------------------------------------------------------------------------------------------------------
  // Puts those names of tokens beside a map for which there is room: a zoomed axis has room for more.
  name(layout, rangeOf) {
    for (const { axes, texts, pitch } of this.meta.names)
      for (const axis of axes) {
        const [from, to] = rangeOf(axis);
        const [start, end] = layout[axis].domain;
        const cell = (end - start) * (axis[0] === "x" ? layout.width : layout.height) / Math.abs(to - from);
        Object.assign(layout[axis], ticks(texts, pitch, cell));
      }
  }
  zoomed() {
    const moved = (axis, i) => this.plot._fullLayout[axis].range.some((end, j) => Math.abs(end - this.ranges[i][j]) > 1e-6);
    const zoomed = this.zoomable.some(moved);
    if (!zoomed && document.activeElement === this.button) this.plot.focus();
    this.button.hidden = !zoomed;
    this.marks();
    if (!zoomed) return;
    const { paper_bgcolor, font } = this.figure.layout;
    const [across, down] = this.meta.tiles.at(-1).axes.map((id) => axisOf(this.plot, id));
    Object.assign(this.button.style, {
      background: paper_bgcolor,
      color: font.color,
      top: `${down._offset + down._length + 5}px`
    });
    this.button.style.left = `${Math.max(0, across._offset + across._length - this.button.offsetWidth)}px`;
  }
  rename() {
    const drawn2 = () => JSON.stringify(this.meta.names.map(({ axes }) => this.figure.layout[axes[0]].tickvals));
    const before = drawn2();
    this.name(this.figure.layout, (axis) => this.plot._fullLayout[axis].range);
    if (drawn2() !== before) this.react();
    this.zoomed();
    if (this.zooms && !this.button.hidden) this.send.setTriggerValue("zoom", this.seen());
  }
  // The cells of the last map that are in sight, [query, query, key, key], each side's first and one beyond its last.
  seen() {
    const { axes, x0, y0 } = this.meta.tiles.at(-1);
    const { queries, keys } = this.kind.side(this.meta.tiles.length - 1);
    const [across, down] = axes.map((id) => axisOf(this.plot, id).range);
    return [...inSight(down, y0, queries.length), ...inSight(across, x0, keys.length)];
  }
  resetZoom() {
    window.Plotly.relayout(
      this.plot,
      Object.fromEntries(this.zoomable.map((axis, i) => [`${axis}.range`, [...this.ranges[i]]]))
    );
  }
  ground() {
    return getComputedStyle(this.frame).backgroundColor;
  }
  // Choosing --------------------------------------------------------------------------------------------------------
  at(event) {
    const box = this.plot.getBoundingClientRect();
    return this.kind ? this.kind.at(event.clientX - box.left, event.clientY - box.top) : null;
  }
  // Clicks are all sent, and again with the next until the server answers.
  choose(spot, pressed) {
    this.chosen = spot;
    this.marks();
    this.say(this.kind.words(spot).join(", "));
    this.serial += 1;
    this.choices = withChoice(this.choices, { ...this.kind.sent(spot), pressed, serial: this.serial });
    clearTimeout(this.sending);
    const send = () => this.send.setTriggerValue("cell", this.choices);
    if (pressed) send();
    else this.sending = setTimeout(send, HELD);
  }
  // Pointer and keys ------------------------------------------------------------------------------------------------
  listen(signal) {
    let pressed = null;
    let before = Number.NEGATIVE_INFINITY;
    const press = (event) => {
      pressed = event;
    };
    this.plot.addEventListener("pointerdown", press, true);
    window.addEventListener(
      "pointerup",
      (event) => {
        if (!pressed) return;
        const still = Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) < 5;
        const spot = still && event.button === 0 ? this.at(event) : null;
        pressed = null;
        if (spot) this.choose(spot, true);
        if (still && event.timeStamp - before < TWICE) this.resetZoom();
        before = still ? event.timeStamp : Number.NEGATIVE_INFINITY;
      },
      { capture: true, signal }
    );
    window.addEventListener("pointercancel", () => press(null), { signal });
    this.plot.addEventListener(
      "pointermove",
      (event) => {
        this.over = event;
        this.frameAsked ??= requestAnimationFrame(() => {
          this.frameAsked = null;
          this.point(pressed || !this.over ? null : this.at(this.over), this.over);
        });
      },
      true
    );
    this.plot.addEventListener("pointerleave", () => {
      this.over = null;
      this.point(null);
    });
    this.plot.addEventListener("keydown", (event) => this.kind && this.pressed(event));
    this.frame.addEventListener(
      "transitionend",
      (event) => event.target === this.frame && this.send.setStateValue("ground", this.ground())
    );
    this.button.addEventListener("click", () => this.resetZoom());
  }
  pressed(event) {
    const spot = this.kind.reached(event.key, this.chosen, event.shiftKey);
    if (spot) this.choose(spot, false);
    else if (event.key === "Enter" || event.key === " ") this.press(event.repeat);
    else if (event.key !== "Escape") return;
    else if (this.button.hidden) this.send.setTriggerValue("reset", true);
    else this.resetZoom();
    event.preventDefault();
    event.stopPropagation();
  }
  press(held) {
    if (!held && (this.chosen.query !== null || this.chosen.key !== null)) this.choose(this.chosen, true);
  }
  point(spot, event) {
    if (!this.kind) return;
    this.pointed = spot;
    this.tip.hidden = !spot;
    this.plot.classList.toggle("mha-over", Boolean(spot));
    if (spot) {
      this.tip.textContent = this.kind.tip(spot);
      const { font, paper_bgcolor, width, height } = this.figure.layout;
      const box = this.plot.getBoundingClientRect();
      const tip = this.tip.getBoundingClientRect();
      const x = beside(event.clientX - box.left, tip.width, width);
      const y = beside(event.clientY - box.top, tip.height, height);
      Object.assign(this.tip.style, { background: paper_bgcolor, color: font.color, transform: `translate(${x}px, ${y}px)` });
    }
    this.marks();
  }
  // What is chosen and what is pointed at, drawn over the picture.
  marks() {
    if (!this.kind) return;
    const { width, height } = this.figure.layout;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== width * ratio || this.canvas.height !== height * ratio) {
      Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
      Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.paint(pen, this.kind, this.pointed, this.chosen);
  }
};

// src/page/sent.js
function sent(data) {
  return JSON.parse(new TextDecoder().decode(data));
}

// src/page/live.js
var pictures = /* @__PURE__ */ new WeakMap();
function live_default({ data, parentElement, setStateValue, setTriggerValue }) {
  if (!pictures.has(parentElement)) pictures.set(parentElement, new LivePicture(parentElement));
  const picture = pictures.get(parentElement);
  picture.send = { setStateValue, setTriggerValue };
  picture.show(sent(data));
  return () => setTimeout(() => parentElement.isConnected || picture.close());
}
export {
  live_default as default
};
