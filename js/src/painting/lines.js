// What is chosen and what is pointed at among lines, drawn over them.

import { SIDES } from "../pure/lines.js";
import { twice } from "./twice.js";

/** Shows what is pointed at, or was chosen a moment ago, with its lines, and dims the others: a token in every panel. */
export function paintLines(pen, lines, pointed, chosen) {
  const spot = pointed ?? (chosen.settled ? null : chosen);
  if (!spot || (spot.query === null && spot.key === null)) return;
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
