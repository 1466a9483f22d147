// Figures of lines. A spot is { panel, query, key }, panel an index into meta.panels: a token where query or key is null, a line
// where neither is, and nothing in focus where both are.

import { panelReached, tokenReached } from "./keys.js";
import { named } from "./names.js";
import { written } from "./numbers.js";

export const SIDES = ["query", "key"];
const PLURAL = { query: "queries", key: "keys" };
const NEAR = 6; // px beside a line that are still its
const NODE = 8; // px of a token's dot towards the lines

export class Lines {
  role = "attention lines";
  keys =
    "Up and down move to another token in focus, left to the queries, right to the keys, Page Up and Page Down go to another head, Escape lets go of it.";

  constructor(plot) {
    this.plot = plot;
    this.meta = plot.layout.meta;
    // Per panel its name and what is drawn in it: [query, key, weight, width] of each line.
    this.panels = plot._fullData
      .filter((trace) => trace.meta === "lines")
      .map(({ name, customdata }) => ({ name, lines: [...customdata] }));
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
    const one = turned || (query !== null && key !== null);
    return { head: one ? this.meta.panels[panel].head : null, query, key };
  }

  words(spot) {
    const tokens = SIDES.filter((side) => spot[side] !== null).map((side) => this.token(side, spot[side]));
    if (tokens.length === 0) return ["no token in focus"];
    const lines = this.of(spot, spot.panel);
    const reads = spot.key === null ? "reads" : "is read by";
    const weights =
      tokens.length === 2
        ? lines.map(([, , weight]) => `${this.meta.quantity} ${written(weight)}`)
        : lines.slice(0, 3).map(([query, key, weight]) => `${reads} ${this.other(spot, query, key)}: ${written(weight)}`);
    return [this.panels[spot.panel].name, ...tokens, ...(weights.length ? weights : ["no line"])];
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
}
