// Figures of lines. A spot is { panel, query, key }, panel an index into meta.panels: a token where query or key is null, a line
// where neither is, and nothing in focus where both are.

const SIDES = ["query", "key"], PLURAL = { query: "queries", key: "keys" };

class Lines {
  role = "attention lines";
  keys = "Up and down move to another token in focus, left to the queries, right to the keys, Page Up and Page Down go to another head, Escape lets go of it.";

  constructor(plot) {
    this.meta = plot.layout.meta;
    this.look = plot.layout;
    // Per panel its name and what is drawn in it: [query, key, weight, width] of each line.
    this.panels = plot._fullData.filter((trace) => trace.meta === "lines").map(({ name, customdata }) => ({ name, lines: [...customdata] }));
  }

  // The token, or else the line, at a point of the picture, in px; null beside them.
  at(left, top) {
    for (let panel = 0; panel < this.panels.length; panel++) {
      for (const side of SIDES) {
        const { x, y, pitch, name } = this.meta.panels[panel][side];
        const outwards = side === "query" ? x - left : left - x, i = Math.round((top - y) / pitch);
        if (-8 <= outwards && outwards <= name && 0 <= i && i < this.tokens(side).length) return { panel, query: null, key: null, [side]: i };
      }
    }
    let nearest = null, least = 6; // px
    this.panels.forEach(({ lines }, panel) => {
      const [from, to] = SIDES.map((side) => this.meta.panels[panel][side].x);
      if (left <= from || to <= left) return;
      for (const [query, key] of lines) {
        const [start, end] = this.ends(panel, query, key);
        const away = top - start[1] - ((left - from) / (to - from)) * (end[1] - start[1]);
        const distance = Math.abs(away) * ((to - from) / Math.hypot(to - from, end[1] - start[1]));
        if (distance < least) [nearest, least] = [{ panel, query, key }, distance];
      }
    });
    return nearest;
  }

  tokens(side) {
    return side === "query" ? this.meta.queries : this.meta.keys;
  }

  // [x, y] of a line's ends in px.
  ends(panel, query, key) {
    return [query, key].map((i, j) => {
      const { x, y, pitch } = this.meta.panels[panel][SIDES[j]];
      return [x, y + i * pitch];
    });
  }

  // The lines of a token in one panel, or the one line, strongest first.
  of({ query, key }, panel) {
    const its = ([q, k]) => (query === null || q === query) && (key === null || k === key);
    return this.panels[panel].lines.filter(its).sort((a, b) => b[2] - a[2]);
  }

  settled({ head, query, key }) {
    const panel = Math.max(0, this.meta.panels.findIndex((panel) => panel.head === head));
    return { panel, query, key, settled: true }; // the figure shows it
  }

  // As the server knows it: a token is chosen in all heads at once.
  sent({ panel, query, key, turned }) {
    const one = turned || (query !== null && key !== null);
    return { head: one ? this.meta.panels[panel].head : null, query, key };
  }

  words(spot) {
    const tokens = SIDES.filter((side) => spot[side] !== null).map((side) => this.token(side, spot[side]));
    if (tokens.length === 0) return ["no token in focus"];
    const lines = this.of(spot, spot.panel);
    const weights = tokens.length === 2
      ? lines.map(([, , weight]) => `${this.meta.quantity} ${written(weight)}`)
      : lines.slice(0, 3).map(([query, key, weight]) => `${spot.key === null ? "reads" : "is read by"} ${this.other(spot, query, key)}: ${written(weight)}`);
    return [this.panels[spot.panel].name, ...tokens, ...(weights.length ? weights : ["no line"])];
  }

  other(spot, query, key) {
    return spot.key === null ? this.token("key", key) : this.token("query", query);
  }

  token(side, i) {
    const which = SIDES.indexOf(side), text = this.tokens(side)[i];
    return this.meta.blocks[which] ? `${PLURAL[side]} ${text}` : named(side, this.meta.first[which] + i, text);
  }

  tip(spot) {
    return this.words(spot).join("\n");
  }

  // The spot to which a key leads from the chosen one; null for any other key.
  reached(pressed, { panel, query, key }) {
    const side = query === null && key !== null ? "key" : "query", i = (side === "key" ? key : query) ?? 0;
    const token = (side, i) => ({ panel, query: null, key: null, [side]: within(i, this.tokens(side).length) });
    if (pressed === "ArrowUp" || pressed === "ArrowDown") return token(side, i + (pressed === "ArrowUp" ? -1 : 1));
    if (pressed === "ArrowLeft" || pressed === "ArrowRight") return token(pressed === "ArrowLeft" ? "query" : "key", i);
    const turn = { PageUp: -1, PageDown: 1 }[pressed], heads = this.meta.panels.filter(({ head }) => head !== null).length;
    return turn && heads > 1 ? { panel: (Math.min(panel, heads - 1) + turn + heads) % heads, query, key, turned: true } : null;
  }

  // Shows what is pointed at, or was chosen a moment ago, with its lines, and dims the others: a token in every panel.
  mark(pen, pointed, chosen) {
    const spot = pointed ?? (chosen.settled ? null : chosen);
    if (!spot || (spot.query === null && spot.key === null)) return;
    const line = spot.query !== null && spot.key !== null;
    for (const panel of line ? [spot.panel] : this.panels.keys()) {
      if (!line) this.dim(pen, panel);
      for (const [query, key, , width] of this.of(spot, panel).reverse()) this.draw(pen, this.ends(panel, query, key), width);
      for (const side of SIDES) if (spot[side] !== null) this.ring(pen, this.meta.panels[panel][side], spot[side]);
    }
  }

  dim(pen, panel) {
    const [query, key] = SIDES.map((side) => this.meta.panels[panel][side]);
    const top = Math.min(query.y, key.y) - 6;
    const bottom = Math.max(...SIDES.map((side) => this.meta.panels[panel][side].y + (this.tokens(side).length - 1) * this.meta.panels[panel][side].pitch)) + 6;
    Object.assign(pen, { fillStyle: this.look.paper_bgcolor, globalAlpha: 0.85 });
    pen.fillRect(query.x + 3, top, key.x - query.x - 6, bottom - top);
    pen.globalAlpha = 1;
  }

  draw(pen, [[x0, y0], [x1, y1]], width) {
    for (const [style, thick] of [[this.look.paper_bgcolor, width + 3], [this.look.font.color, width]]) {
      Object.assign(pen, { strokeStyle: style, lineWidth: thick });
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.lineTo(x1, y1);
      pen.stroke();
    }
  }

  ring(pen, { x, y, pitch }, i) {
    for (const [style, thick] of [[this.look.paper_bgcolor, 5], [this.look.font.color, 2.5]]) {
      Object.assign(pen, { strokeStyle: style, lineWidth: thick });
      pen.beginPath();
      pen.arc(x, y + i * pitch, 6, 0, 2 * Math.PI);
      pen.stroke();
    }
  }
}
