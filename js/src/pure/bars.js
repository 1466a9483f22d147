// Bars of values in the labels of maps, while somebody points. `measure(text, font)` is the width of a text in px.

const LONGEST = 90; // px
const SHORTEST = 16; // px of a bar that has its value in figures beside it

/** Per label where its bar lies. Bars of one kind are of one length, so that the eye may compare them, and have the value in figures
 * beside all of them or none. */
export function rooms(tiles, measure) {
  const all = tiles.map((entry) => room(entry, measure));
  return all.map((own, tile) => {
    const alike = all.filter((_, i) => tiles[i].title[1] === tiles[tile].title[1]);
    const written = alike.every(({ long }) => long >= SHORTEST);
    return { ...own, written, long: Math.min(LONGEST, ...alike.map(({ long, alone }) => (written ? long : alone))) };
  });
}

/** Where in a label the bar begins, how long it may be beside the value in figures and alone, and the lines of name and bar. */
function room({ label: [, , width, height], title: [name, size], source }, measure) {
  const two = height > 36;
  const start = two ? 0 : measure(name, `bold ${size}px`) + 8;
  const figures = measure(source === "difference" ? "+0.000" : "0.000", "13px") + 6;
  const alone = width - start;
  return { start, long: alone - figures, alone, first: two ? 0.28 : 0.5, line: two ? 0.74 : 0.5 };
}

/** From where to where, in parts of its length, the bar of a value is filled: from zero, in its middle where it may be either side of
 * it, and no further than the end of the scale. null for a value that is no number. */
export function filled(value, largest, signed) {
  const end = signed ? 0.5 + value / largest.change / 2 : value / largest.weight;
  const zero = signed ? 0.5 : 0;
  return Number.isFinite(end) ? [zero, Math.min(Math.max(end, 0), 1)].sort((p, q) => p - q) : null;
}
