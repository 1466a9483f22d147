/** Strokes what `draw` draws twice, in the ground's colour and over it in the text's, so that it is seen on any colour: `widths` px. */
export function twice(pen, { paper_bgcolor, font }, widths, draw) {
  [paper_bgcolor, font.color].forEach((strokeStyle, i) => {
    Object.assign(pen, { strokeStyle, lineWidth: widths[i] });
    draw();
  });
}
