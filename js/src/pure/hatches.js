/** One of Plotly's hatches over a box as the attributes of a path, repeated every `step` px. `one` is the child of Plotly's pattern, its
 * attributes and its `tag`: a path of "/" or "x", or a circle, whose dots are the dashes, of no length, of a line with round ends. */
export function strokes(one, { x, y, width, height }, step, scale) {
  const right = x + width;
  const bottom = y + height;
  const above = y - step;
  const below = bottom + step;
  const lines = (from, to, line) => {
    const [first, last] = [Math.floor(from / step), Math.ceil(to / step)];
    return Array.from({ length: last - first + 1 }, (_, i) => line((first + i) * step)).join("");
  };
  if (one.tag === "circle") {
    const left = (Math.floor(x / step) - 0.5) * step;
    return {
      d: lines(above, bottom, (at) => `M${left},${at + step / 2}H${right + step}`),
      stroke: one.fill,
      "stroke-width": 2 * one.r * scale,
      "stroke-dasharray": `0 ${step}`,
      "stroke-linecap": "round",
    };
  }
  const rising = lines(x + y, right + bottom, (sum) => `M${sum - above},${above}L${sum - below},${below}`);
  const crossed = one.d.split("M").length > 4;
  const falling = crossed ? lines(x - bottom, right - y, (gap) => `M${gap + above},${above}L${gap + below},${below}`) : "";
  return { d: rising + falling, stroke: one.stroke, "stroke-width": Number.parseFloat(one["stroke-width"]) * scale };
}
