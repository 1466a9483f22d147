// The figure of decoding: panels whose rows are heads and whose columns are tokens. A spot is a token, { key }, with the panel and the
// row where one points.

import { axisOf, index, within } from "./axes.js";
import { placeReached } from "./keys.js";
import { named } from "./names.js";
import { written } from "./numbers.js";

export class Columns {
  role = "decoding, token by token";
  keys =
    "Left and right arrow keys go a token back and on, Home and End to the first and the last; a click on a column goes to its token.";

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
    if (panel === undefined) return [token];
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
}
