// The figure of decoding: panels whose rows are heads and whose columns are tokens. A spot is a token, { key }, with the panel and the
// row where one points.

class Columns {
  role = "decoding, token by token";
  keys = "Left and right arrow keys go a token back and on, Home and End to the first and the last; a click on a column goes to its token.";

  constructor(plot) {
    this.plot = plot;
    this.meta = plot.layout.meta;
  }

  at(left, top) {
    for (let panel = 0; panel < this.meta.panels.length; panel++) {
      const { axes: [x, y], rows } = this.meta.panels[panel];
      const key = index(axis(this.plot, x), left, 0, this.meta.keys.length), row = index(axis(this.plot, y), top, 0, rows.length);
      if (key !== null && row !== null) return { panel, row, key };
    }
    return null;
  }

  settled({ key }) {
    return { query: null, key };
  }

  sent({ key }) {
    return { head: null, query: null, key: within(key, this.meta.tokens) };
  }

  words({ panel, row, key }) {
    const token = named("token", key, this.meta.keys[key]);
    if (panel === undefined) return [token];
    const { rows, name, quantity, blanks } = this.meta.panels[panel], value = this.plot._fullData.filter((t) => t.type === "heatmap")[panel].z[row][key];
    return [`${rows[row]}, ${name}`, token, Number.isFinite(value) ? `${quantity} ${written(value)}` : blanks[key]];
  }

  tip(spot) {
    return this.words(spot).join("\n");
  }

  reached(pressed, { key }) {
    const last = this.meta.tokens - 1;
    const next = { ArrowLeft: key - 1, ArrowRight: key + 1, Home: 0, End: last }[pressed];
    return next === undefined ? null : { query: null, key: within(next, this.meta.tokens) };
  }

  mark(pen, pointed) {
    if (!pointed || pointed.panel === undefined) return;
    const { axes: [x, y], rows } = this.meta.panels[pointed.panel], { font, paper_bgcolor } = this.plot.layout;
    const [left, right] = edges(axis(this.plot, x), 0, pointed.key, this.meta.keys.length);
    const [top, bottom] = edges(axis(this.plot, y), 0, pointed.row, rows.length);
    for (const [style, thick] of [[paper_bgcolor, 3], [font.color, 1]]) {
      Object.assign(pen, { strokeStyle: style, lineWidth: thick });
      pen.strokeRect(left, top, right - left, bottom - top);
    }
  }
}
