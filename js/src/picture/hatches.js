import { strokes } from "../pure/hatches.js";
import { element } from "./elements.js";

/** Puts lines, cut to the outline, in the place of a hatched area: Chromium prints a pattern as a bitmap. */
export function hatch(path, name) {
  const pattern = document.getElementById(/#([^"')]+)/.exec(path.style.fill)[1]);
  const [ground, one] = pattern.children;
  const scale = /scale\((.*)\)/.exec(pattern.getAttribute("patternTransform"))?.[1] ?? 1;
  const step = Number.parseFloat(pattern.getAttribute("width")) * scale;
  const fill = ground.getAttribute("fill");
  const under = { fill, opacity: ground.getAttribute("fill-opacity"), stroke: fill, "stroke-width": 0.5 }; // a hair beyond what it hides
  const area = element("g", { transform: path.getAttribute("transform") ?? "" });
  for (const d of path.getAttribute("d").split(/(?=M)/)) area.append(element("path", { d, ...under })); // each a polygon
  path.replaceWith(area);
  const polygons = [...area.children];
  const boxes = polygons.map((polygon) => polygon.getBBox());
  polygons.forEach((polygon, i) => {
    const id = `${name}-${i}`;
    const clip = element("clipPath", { id });
    const cut = element("g", { "clip-path": `url(#${id})` });
    clip.append(element("path", { d: polygon.getAttribute("d") }));
    cut.append(element("path", { fill: "none", ...strokes(described(one), boxes[i], step, scale) }));
    polygon.after(clip, cut);
  });
}

/** An element as plain data: its `tag` and its attributes. */
function described(one) {
  return { ...Object.fromEntries([...one.attributes].map(({ name, value }) => [name, value])), tag: one.tagName };
}
