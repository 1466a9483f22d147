// How numbers are written. mha_viz/core/decimals.py writes the same ones: tests/data/python_and_js.json holds both to it.

const SURE = 7; // decimals that rounding errors of float32 leave alone

/** A weight or a change, to six digits: 0.250000, −0.500000, and 2.00e−7 where six digits would say nothing. */
export function written(value) {
  return withMinus(value !== 0 && Math.abs(value) < 1e-6 ? value.toExponential(2) : fixed(value, 6));
}

/** The same to three digits, for where there is little room; a change has its sign: +0.250. */
export function writtenShort(value, signed) {
  if (!Number.isFinite(value)) return "n/a";
  return plus(value, signed) + withMinus(fixed(Number(fixed(value, SURE)), 3));
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

/** A value with so many decimals. What lies exactly between two, as 1/16 does for three decimals, goes to the even one: Python rounds so,
 * and toFixed takes the larger. */
function fixed(value, decimals) {
  const exact = Math.abs(value).toFixed(100); // more than any number has that lies between two
  const end = exact.indexOf(".") + 1 + decimals;
  const toEven = /^50*$/.test(exact.slice(end)) && Number(exact[end - 1]) % 2 === 0;
  return toEven ? (value < 0 ? "-" : "") + exact.slice(0, end) : value.toFixed(decimals);
}

function withMinus(text) {
  return text.replace(/-/g, "−");
}
