// A figure as a file, drawn by a browser: the page's own, when somebody saves what they see, or one without a window (browser.py).
// Plotly lays it out. What it would draw as a bitmap, or another way the next time, is put right here.

const MOST_CELLS = 40_000; // of a vector picture: 3 MB, which a browser opens within a second
const MOST_PIXELS = 100_000_000; // of a PNG: 400 MB while it is made
const PER_INCH = { px: 96, mm: 25.4, in: 1 };
const IN_SVG = "http://www.w3.org/2000/svg";

const fonts = new Map(); // family → style element, as text

class TooLarge extends Error {}

// The figure { data, layout } as a Blob, "png" or "svg", or for "pdf" the SVG that a browser prints without any bitmap. `size` is the
// width of the finished picture in a unit, px, mm or in; a PNG has `scale` px for each px of that.
async function pictureOf(Plotly, figure, format, { scale = 1, size = [figure.layout.width, "px"] } = {}) {
  const [width, unit] = size, height = (width * figure.layout.height) / figure.layout.width;
  const [across, down] = [width, height].map((side) => Math.round((side / PER_INCH[unit]) * PER_INCH.px * scale));
  if (format === "png" && across * down > MOST_PIXELS) {
    const most = `${counted(MOST_PIXELS)} in all`;
    throw new TooLarge(`holds no ${counted(across)} × ${counted(down)} px, ${most}: choose a smaller scale or size, or SVG or PDF.`);
  }
  const font = await webFont(figure.layout.font.family), suffix = unit === "px" ? "" : unit;
  const text = (await drawn(Plotly, figure, format))
    .replace(/ width="\S*" height="\S*"/, ` width="${short(width)}${suffix}" height="${short(height)}${suffix}"`)
    .replace(">", `>${font}`);
  const svg = new Blob([text], { type: "image/svg+xml" });
  return format === "png" ? raster(svg, across, down, (scale * PER_INCH.px) / 0.0254) : svg;
}

// The figure as Plotly's SVG, all marks visible, with what only the pointer meets left out.
async function drawn(Plotly, { data, layout }, format) {
  const seen = data.filter(({ meta }) => meta !== "lines");
  const traces = seen.map((trace, i) => ({ ...trace, uid: `${i}`, ...(trace.meta === "mark" && { opacity: 1 }) }));
  const plot = document.body.appendChild(document.createElement("div"));
  plot.style.cssText = "position: absolute; left: -10000px; top: 0";
  try {
    await Plotly.newPlot(plot, traces, { ...structuredClone(layout), hovermode: false }, { staticPlot: true });
    const maps = [...plot.querySelectorAll(".hm image")];
    if (fits(maps, format)) for (const map of maps) map.replaceWith(await cells(plot, map, format === "pdf" ? 0.5 : 0));
    if (format === "pdf") plot.querySelectorAll(".pattern_filled").forEach((path, i) => hatch(path, `hatch-${i}`));
    for (const line of plot.querySelectorAll(".crisp")) line.setAttribute("shape-rendering", "crispEdges"); // so a stylesheet says
    // Paper has no pixels to keep to, and Chromium would print such lines as thin as can be where they are made smaller.
    if (format === "pdf") for (const crisp of plot.querySelectorAll("[shape-rendering]")) crisp.removeAttribute("shape-rendering");
    for (const styled of plot.querySelectorAll("svg [style]")) {
      const style = styled.getAttribute("style"); // which Plotly sets earlier the first time that it draws a legend
      styled.removeAttribute("style");
      styled.setAttribute("style", style);
    }
    return stable(Plotly.Snapshot.toSVG(plot, "svg", 1), plot._fullLayout._uid);
  } finally {
    Plotly.purge(plot);
    plot.remove();
  }
}

// Whether the cells can be drawn one by one; a PNG of more keeps Plotly's bitmaps, any other picture cannot be.
function fits(maps, format) {
  const all = maps.reduce((sum, { __data__: { z } }) => sum + z.length * z[0].length, 0);
  if (all > MOST_CELLS && format !== "png")
    throw new TooLarge(`holds no ${counted(all)} cells, ${counted(MOST_CELLS)} at most: choose fewer heads, or one alone, or PNG at 4×.`);
  return all <= MOST_CELLS;
}

// The cells of a map, each a rectangle where Plotly's bitmap has it on the screen and of its colour there. Cells without a value are
// left out, and those that a zoomed axis has moved off the picture. In a PDF, whose viewers soften edges, cells without a gap reach so
// many px `under` the next: paper would shine through.
async function cells(plot, image, under) {
  const { trace, x, y } = image.__data__, { xaxis, yaxis } = plot._fullLayout._plots[trace.xaxis + trace.yaxis];
  const [left, top, width, height] = ["x", "y", "width", "height"].map((name) => Number(image.getAttribute(name)));
  const bitmap = await pixels(image.getAttribute("href"));
  const stretched = image.hasAttribute("style"); // a bitmap of one px a cell: any other has its cells on whole px
  const columns = spans(xaxis, x, trace.xgap, left, stretched ? null : width);
  const rows = spans(yaxis, y, trace.ygap, top, stretched ? null : height);
  const found = element("g", { class: "cells", "shape-rendering": "crispEdges" }), reach = stretched ? under : 0;
  for (const [y0, y1] of rows)
    for (const [x0, x1] of columns) {
      const column = Math.floor((((x0 + x1) / 2 - left) / width) * bitmap.width);
      const row = Math.floor((((y0 + y1) / 2 - top) / height) * bitmap.height);
      const [red, green, blue, there] = bitmap.data.subarray(4 * (row * bitmap.width + column));
      if (!there) continue;
      const fill = `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
      const right = Math.min(x1 + reach, columns.at(-1)[1]), bottom = Math.min(y1 + reach, rows.at(-1)[1]);
      found.append(element("rect", { x: x0, y: y0, width: short(right - x0), height: short(bottom - y0), fill }));
    }
  return found;
}

// From where to where, in px, the cells between `edges` are seen on an axis: on whole px of a bitmap of this `size`, if it has one.
function spans(axis, edges, gap, start, size) {
  const place = (px) => (size === null ? px : start + Math.min(Math.max(Math.round(px - start), 0), size));
  const ends = edges.map((edge) => short(place(axis.c2p(edge)))), before = Math.floor(gap / 2);
  const all = ends.slice(1).map((end, i) => [Math.min(ends[i], end) + before, Math.max(ends[i], end) + before - gap]);
  return all.filter(([from, to]) => from < to && to > 0 && from < short(axis._length));
}

// The px of a bitmap, as ImageData.
async function pixels(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
  pen.drawImage(image, 0, 0);
  return pen.getImageData(0, 0, image.width, image.height);
}

// Puts lines, cut to the outline, in the place of a hatched area: Chromium prints a pattern as a bitmap.
function hatch(path, name) {
  const pattern = document.getElementById(/#([^"')]+)/.exec(path.style.fill)[1]), [ground, one] = pattern.children;
  const scale = /scale\((.*)\)/.exec(pattern.getAttribute("patternTransform"))?.[1] ?? 1;
  const step = parseFloat(pattern.getAttribute("width")) * scale, fill = ground.getAttribute("fill");
  const under = { fill, opacity: ground.getAttribute("fill-opacity"), stroke: fill, "stroke-width": 0.5 }; // a hair beyond what it hides
  const area = element("g", { transform: path.getAttribute("transform") ?? "" });
  for (const d of path.getAttribute("d").split(/(?=M)/)) area.append(element("path", { d, ...under })); // each a polygon
  path.replaceWith(area);
  const polygons = [...area.children], boxes = polygons.map((polygon) => polygon.getBBox());
  polygons.forEach((polygon, i) => {
    const id = `${name}-${i}`, clip = element("clipPath", { id }), cut = element("g", { "clip-path": `url(#${id})` });
    clip.append(element("path", { d: polygon.getAttribute("d") }));
    cut.append(element("path", { fill: "none", ...strokes(one, boxes[i], step, scale) }));
    polygon.after(clip, cut);
  });
}

// One of Plotly's hatches, "/", "x" or ".", over a box, as a path's attributes: it is repeated every `step` px. Dots are the dashes, of
// no length, of a line with round ends.
function strokes(one, { x, y, width, height }, step, scale) {
  const right = x + width, bottom = y + height, above = y - step, below = bottom + step;
  const lines = (from, to, line) => {
    const [first, last] = [Math.floor(from / step), Math.ceil(to / step)];
    return Array.from({ length: last - first + 1 }, (_, i) => line((first + i) * step)).join("");
  };
  if (one.tagName === "circle") {
    const dots = { "stroke-width": 2 * one.getAttribute("r") * scale, "stroke-dasharray": `0 ${step}`, "stroke-linecap": "round" };
    const left = (Math.floor(x / step) - 0.5) * step;
    return { d: lines(above, bottom, (at) => `M${left},${at + step / 2}H${right + step}`), stroke: one.getAttribute("fill"), ...dots };
  }
  const rising = lines(x + y, right + bottom, (sum) => `M${sum - above},${above}L${sum - below},${below}`);
  const crossed = one.getAttribute("d").split("M").length > 4;
  const falling = crossed ? lines(x - bottom, right - y, (gap) => `M${gap + above},${above}L${gap + below},${below}`) : "";
  return { d: rising + falling, stroke: one.getAttribute("stroke"), "stroke-width": parseFloat(one.getAttribute("stroke-width")) * scale };
}

// The SVG with Plotly's random ids put right: they end in a digest of the picture, so that the same picture always has the same and two
// in one document do not share any.
function stable(svg, random) {
  const ids = new RegExp(`(id="|#)([a-z]+-?)${random}`, "g");
  const plain = svg.replace(/url\('?[^#)]*(#[^)']*)'?\)/g, "url($1)").replace(ids, "$1$2");
  let digest = 0x811c9dc5; // FNV-1a
  for (let i = 0; i < plain.length; i++) digest = Math.imul(digest ^ plain.charCodeAt(i), 0x01000193);
  return plain.replace(/(id="|url\(#)/g, `$1p${(digest >>> 0).toString(16)}-`);
}

async function raster(svg, width, height, perMetre) {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  await image.decode();
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").drawImage(image, 0, 0, width, height);
  URL.revokeObjectURL(image.src);
  return measured(await canvas.convertToBlob({ type: "image/png" }), Math.round(perMetre));
}

// The PNG with its px per metre, by which documents know how large it is: a chunk pHYs after its header.
function measured(png, perMetre) {
  const chunk = new DataView(new ArrayBuffer(21));
  [9, 0x70485973, perMetre, perMetre].forEach((number, i) => chunk.setUint32(4 * i, number));
  chunk.setUint8(16, 1);
  let check = ~0; // CRC-32
  for (const byte of new Uint8Array(chunk.buffer, 4, 13)) {
    check ^= byte;
    for (let bit = 0; bit < 8; bit++) check = check & 1 ? (check >>> 1) ^ 0xedb88320 : check >>> 1;
  }
  chunk.setUint32(17, ~check);
  return new Blob([png.slice(0, 33), chunk, png.slice(33)], { type: png.type });
}

// A style element with the page's upright @font-face rules for the first of these families, their files within them: a file sees nothing
// of the page's fonts, and where words are laid out for one, another's would touch. Nothing where that family is no web font.
async function webFont(families) {
  const family = bare(families.split(",")[0]);
  await document.fonts.load(`14px "${family}"`); // before Plotly lays words out
  if (!fonts.has(family)) fonts.set(family, await fontFaces(family));
  return fonts.get(family);
}

async function fontFaces(family) {
  const sheets = [...document.styleSheets].filter(({ href }) => !href || href.startsWith(location.origin)); // others may not be read
  const faces = sheets.flatMap((sheet) => [...sheet.cssRules].map((rule) => [rule, sheet.href ?? document.baseURI])).filter(
    ([rule]) => rule instanceof CSSFontFaceRule && bare(rule.style.fontFamily) === family && rule.style.fontStyle !== "italic",
  );
  const rules = faces.map(async ([{ style }, base]) => {
    const url = new URL(/url\(["']?(.*?)["']?\)/.exec(style.src)[1], base), file = await dataUrl(await (await fetch(url)).blob());
    return `@font-face { font-family: "${family}"; font-weight: ${style.fontWeight || "normal"}; src: url(${file}); }`;
  });
  return rules.length ? `<style>${(await Promise.all(rules)).join(" ")}</style>` : "";
}

function bare(name) {
  return name.replace(/["']/g, "").trim();
}

function dataUrl(blob) {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });
}

function element(name, attributes) {
  const found = document.createElementNS(IN_SVG, name);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  return found;
}

// 4.000000001 → 4: a thousandth of a px is less than anybody sees.
function short(number) {
  return Number(number.toFixed(3));
}

function counted(number) {
  return number.toLocaleString("en");
}
