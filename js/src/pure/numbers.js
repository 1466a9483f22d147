// How numbers are written. mha_viz/core/decimals.py writes the same ones: tests/data/python_and_js.json holds both to it.

/** A weight or a change, to six digits: 0.250000, −0.500000, and 2.00e−7 where six digits would say nothing. */
export function written(value) {
  return withMinus(value !== 0 && Math.abs(value) < 1e-6 ? value.toExponential(2) : value.toFixed(6));
}

/** The same to three digits, for where there is little room; a change has its sign: +0.250. */
export function writtenShort(value, signed) {
  if (!Number.isFinite(value)) return "n/a";
  return plus(value, signed) + withMinus(value.toFixed(3));
}

/** The + before a change that is more than nothing. */
export function plus(value, signed = true) {
  return signed && value > 0 ? "+" : "";
}

/** 40000 → 40,000. */
export function counted(number) {
  return number.toLocaleString("en");
}

/** 4.000000001 → 4: a thousandth of a px is less than anybody sees. */
export function short(number) {
  return Number(number.toFixed(3));
}

function withMinus(text) {
  return text.replace(/-/g, "−");
}
