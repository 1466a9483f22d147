const IN_SVG = "http://www.w3.org/2000/svg";

/** A new element of an SVG with these attributes. */
export function element(name, attributes) {
  const found = document.createElementNS(IN_SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) found.setAttribute(attribute, value);
  return found;
}
