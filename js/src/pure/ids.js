/** The SVG with Plotly's random ids put right: they end in a digest of the picture, so that the same picture always has the same and two
 * in one document do not share any. `random` is what Plotly put into its ids. */
export function stable(svg, random) {
  const ids = new RegExp(`(id="|#)([a-z]+-?)${random}`, "g");
  const plain = svg.replace(/url\('?[^#)]*(#[^)']*)'?\)/g, "url($1)").replace(ids, "$1$2");
  return plain.replace(/(id="|url\(#)/g, `$1p${digest(plain)}-`);
}

/** FNV-1a of a text, in hexadecimal digits. */
function digest(text) {
  let sum = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193);
  return (sum >>> 0).toString(16);
}
