/** Whether a point lies in one of a trace's polygons, between which there are gaps: it crosses an odd number of their sides. */
export function inside({ x, y }, atX, atY) {
  let odd = false;
  let start = 0;
  for (let i = 0; i < x.length; i++) {
    if (Number.isNaN(x[i])) {
      start = i + 1;
      continue;
    }
    const j = i + 1 < x.length && !Number.isNaN(x[i + 1]) ? i + 1 : start;
    if (y[i] > atY !== y[j] > atY && x[i] > atX) odd = !odd; // sides are vertical or level
  }
  return odd;
}
