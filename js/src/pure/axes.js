// Cells along an axis, in px and back. An axis is Plotly's own: `_offset` and `_length` in px of the picture, `l2p` from a position on it
// to px from its start, `p2l` back. Cell i has its centre at position `first` + i.

import { short } from "./numbers.js";

/** Plotly's own axis for a trace's name of it, "x2". */
export function axisOf(plot, id) {
  return plot._fullLayout[`${id[0]}axis${id.slice(1)}`];
}

/** `i`, or the nearest one of 0 to `count` − 1. */
export function within(i, count) {
  return clamped(i, 0, count - 1);
}

/** Which of `count` cells is at this px; null beside them. */
export function index(axis, px, first, count) {
  if (px < axis._offset || px > axis._offset + axis._length) return null;
  const i = Math.round(axis.p2l(px - axis._offset) - first);
  return 0 <= i && i < count ? i : null;
}

/** The px of an outline that lies within cell i of `count`, or around one that is too small, and within the tile: as `marks` in
 * mha_viz/figures/tiles.py has it. */
export function edges(axis, first, i, count) {
  const px = pxOn(axis);
  const [low, high] = inOrder(px(first - 0.5), px(first + count - 0.5));
  const side = (high - low) / count;
  const half = side >= 16 ? side / 2 - 2.5 : Math.max(side / 2, 4);
  const centre = Math.max(low + half + 2.5, Math.min(high - half - 2.5, px(first + i)));
  return [centre - half, centre + half];
}

/** The px of cell i of `count`, as far as it is on screen, and those of the tile. */
export function span(axis, first, i, count) {
  const px = pxOn(axis);
  const seen = (position) => clamped(px(position), axis._offset, axis._offset + axis._length);
  return [...inOrder(seen(first + i - 0.5), seen(first + i + 0.5)), ...inOrder(seen(first - 0.5), seen(first + count - 0.5))];
}

/** The cells of `count` that a zoomed axis shows: the first one, and one beyond the last. */
export function inSight(range, first, count) {
  const [low, high] = inOrder(...range).map((end) => Math.round(end - first + 0.5));
  const start = within(low, count);
  return [start, Math.max(start + 1, Math.min(high, count))];
}

/** From where to where, in px, the cells between `ends` are seen with a `gap` between them, those off the axis left out: on whole px of a
 * bitmap that begins at `start` and has this `size`, if it has one. */
export function spans(axis, ends, gap, start, size) {
  const place = (px) => (size === null ? px : start + clamped(Math.round(px - start), 0, size));
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
