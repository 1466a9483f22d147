// What tokens are called, and how many of them are named beside a map: as mha_viz/figures/labels.py and geometry.py have it.

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/** A token as the tip and the status name it: query 3 “on”, or query 3 where its text says nothing else. */
export function named(kind, i, text) {
  return text === String(i) ? `${kind} ${i}` : `${kind} ${i} “${text}”`;
}

/** The first of 1, 2, 5, 10 … that is not below `least`; undefined beyond the last. */
export function niceStep(least) {
  return STEPS.find((step) => step >= least - 1e-9);
}

/** Which of these texts are named, every so many px `pitch` apart, beside cells of so many px: Plotly's tickvals and ticktext. */
export function ticks(texts, pitch, cell) {
  const step = niceStep(pitch / cell);
  const tickvals = texts.map((_, i) => i).filter((i) => i % step === 0);
  return { tickvals, ticktext: tickvals.map((i) => texts[i]) };
}
