// Bundled from js/src/page/saver.js by make bundle. Its comments stand there, and changes belong there.
// sha256 a6af3406578d69e0f7af8fbf76d51baebfb8e03b2be62d5f6506bf2f947ed5ae
// src/pure/ids.js
function stable(svg, random) {
  const ids = new RegExp(`(id="|#)([a-z]+-?)${random}`, "g");
  const plain = svg.replace(/url\('?[^#)]*(#[^)']*)'?\)/g, "url($1)").replace(ids, "$1$2");
  return plain.replace(/(id="|url\(#)/g, `$1p${digest(plain)}-`);
}
function digest(text) {
  let sum = 2166136261;
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 16777619);
  return (sum >>> 0).toString(16);
}

// src/pure/numbers.js
function counted(number) {
  return number.toLocaleString("en");
}
function short(number) {
  return Number(number.toFixed(3));
}

// src/pure/sizes.js
var PER_INCH = { px: 96, mm: 25.4, in: 1 };
var MOST_CELLS = 4e4;
var MOST_PIXELS = 1e8;
var TooLarge = class extends Error {
};
function pixelsOf([width, unit], layout, scale) {
  const height = width * layout.height / layout.width;
  return [width, height].map((side) => Math.round(side / PER_INCH[unit] * PER_INCH.px * scale));
}
function perMetre(scale) {
  return scale * PER_INCH.px / 0.0254;
}
function checkPixels([across, down]) {
  if (across * down <= MOST_PIXELS) return;
  const most = `${counted(MOST_PIXELS)} in all`;
  throw new TooLarge(
    `holds no ${counted(across)} × ${counted(down)} px, ${most}: choose a smaller scale or size, or SVG or PDF.`
  );
}
function oneByOne(cells2, format) {
  if (cells2 > MOST_CELLS && format !== "png")
    throw new TooLarge(
      `holds no ${counted(cells2)} cells, ${counted(MOST_CELLS)} at most: choose fewer heads, or one alone, or PNG at 4×.`
    );
  return cells2 <= MOST_CELLS;
}

// src/pure/axes.js
function spans(axis, ends, gap, start, size) {
  const place = (px2) => size === null ? px2 : start + clamped(Math.round(px2 - start), 0, size);
  const px = ends.map((end) => short(place(axis.c2p(end))));
  const before = Math.floor(gap / 2);
  const all = px.slice(1).map((end, i) => [Math.min(px[i], end) + before, Math.max(px[i], end) + before - gap]);
  return all.filter(([from, to]) => from < to && to > 0 && from < short(axis._length));
}
function clamped(value, least, most) {
  return Math.min(Math.max(value, least), most);
}

// src/picture/elements.js
var IN_SVG = "http://www.w3.org/2000/svg";
function element(name, attributes) {
  const found = document.createElementNS(IN_SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) found.setAttribute(attribute, value);
  return found;
}

// src/picture/cells.js
async function cells(plot, image, under) {
  const { trace, x, y } = image.__data__;
  const { xaxis, yaxis } = plot._fullLayout._plots[trace.xaxis + trace.yaxis];
  const [left, top, width, height] = ["x", "y", "width", "height"].map((name) => Number(image.getAttribute(name)));
  const bitmap = await pixels(image.getAttribute("href"));
  const stretched = image.hasAttribute("style");
  const columns = spans(xaxis, x, trace.xgap, left, stretched ? null : width);
  const rows = spans(yaxis, y, trace.ygap, top, stretched ? null : height);
  const found = element("g", { class: "cells", "shape-rendering": "crispEdges" });
  const reach = stretched ? under : 0;
  for (const [y0, y1] of rows)
    for (const [x0, x1] of columns) {
      const column = Math.floor(((x0 + x1) / 2 - left) / width * bitmap.width);
      const row = Math.floor(((y0 + y1) / 2 - top) / height * bitmap.height);
      const [red, green, blue, there] = bitmap.data.subarray(4 * (row * bitmap.width + column));
      if (!there) continue;
      const fill = `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
      const right = Math.min(x1 + reach, columns.at(-1)[1]);
      const bottom = Math.min(y1 + reach, rows.at(-1)[1]);
      found.append(element("rect", { x: x0, y: y0, width: short(right - x0), height: short(bottom - y0), fill }));
    }
  return found;
}
async function pixels(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
  pen.drawImage(image, 0, 0);
  return pen.getImageData(0, 0, image.width, image.height);
}

// src/picture/fonts.js
var fonts = /* @__PURE__ */ new Map();
async function webFont(families) {
  const family = bare(families.split(",")[0]);
  await document.fonts.load(`14px "${family}"`);
  if (!fonts.has(family)) fonts.set(family, await fontFaces(family));
  return fonts.get(family);
}
async function fontFaces(family) {
  const sheets = [...document.styleSheets].filter(({ href }) => !href || href.startsWith(location.origin));
  const faces = sheets.flatMap((sheet) => [...sheet.cssRules].map((rule) => [rule, sheet.href ?? document.baseURI])).filter(
    ([rule]) => rule instanceof CSSFontFaceRule && bare(rule.style.fontFamily) === family && rule.style.fontStyle !== "italic"
  );
  const rules = faces.map(async ([{ style }, base]) => {
    const url = new URL(/url\(["']?(.*?)["']?\)/.exec(style.src)[1], base);
    const file = await dataUrl(await (await fetch(url)).blob());
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

// src/pure/hatches.js
function strokes(one, { x, y, width, height }, step, scale) {
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
      "stroke-linecap": "round"
    };
  }
  const rising = lines(x + y, right + bottom, (sum) => `M${sum - above},${above}L${sum - below},${below}`);
  const crossed = one.d.split("M").length > 4;
  const falling = crossed ? lines(x - bottom, right - y, (gap) => `M${gap + above},${above}L${gap + below},${below}`) : "";
  return { d: rising + falling, stroke: one.stroke, "stroke-width": Number.parseFloat(one["stroke-width"]) * scale };
}

// src/picture/hatches.js
function hatch(path, name) {
  const pattern = document.getElementById(/#([^"')]+)/.exec(path.style.fill)[1]);
  const [ground, one] = pattern.children;
  const scale = /scale\((.*)\)/.exec(pattern.getAttribute("patternTransform"))?.[1] ?? 1;
  const step = Number.parseFloat(pattern.getAttribute("width")) * scale;
  const fill = ground.getAttribute("fill");
  const under = { fill, opacity: ground.getAttribute("fill-opacity"), stroke: fill, "stroke-width": 0.5 };
  const area = element("g", { transform: path.getAttribute("transform") ?? "" });
  for (const d of path.getAttribute("d").split(/(?=M)/)) area.append(element("path", { d, ...under }));
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
function described(one) {
  return { ...Object.fromEntries([...one.attributes].map(({ name, value }) => [name, value])), tag: one.tagName };
}

// src/pure/png.js
var HEADER = 33;
function density(perMetre2) {
  const chunk = new DataView(new ArrayBuffer(21));
  [9, 1883789683, perMetre2, perMetre2].forEach((number, i) => {
    chunk.setUint32(4 * i, number);
  });
  chunk.setUint8(16, 1);
  chunk.setUint32(17, crc32(new Uint8Array(chunk.buffer, 4, 13)));
  return chunk;
}
function crc32(bytes) {
  let check = ~0;
  for (const byte of bytes) {
    check ^= byte;
    for (let bit = 0; bit < 8; bit++) check = check & 1 ? check >>> 1 ^ 3988292384 : check >>> 1;
  }
  return ~check;
}

// src/picture/raster.js
async function raster(svg, width, height, perMetre2) {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  await image.decode();
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").drawImage(image, 0, 0, width, height);
  URL.revokeObjectURL(image.src);
  const png = await canvas.convertToBlob({ type: "image/png" });
  return new Blob([png.slice(0, HEADER), density(Math.round(perMetre2)), png.slice(HEADER)], { type: png.type });
}

// src/picture/picture.js
async function pictureOf(Plotly, figure, format, { scale = 1, size = [figure.layout.width, "px"] } = {}) {
  const [width, unit] = size;
  const height = width * figure.layout.height / figure.layout.width;
  const pixels2 = pixelsOf(size, figure.layout, scale);
  if (format === "png") checkPixels(pixels2);
  const font = await webFont(figure.layout.font.family);
  const suffix = unit === "px" ? "" : unit;
  const text = (await drawn(Plotly, figure, format)).replace(/ width="\S*" height="\S*"/, ` width="${short(width)}${suffix}" height="${short(height)}${suffix}"`).replace(">", `>${font}`);
  const svg = new Blob([text], { type: "image/svg+xml" });
  return format === "png" ? raster(svg, ...pixels2, perMetre(scale)) : svg;
}
async function drawn(Plotly, { data, layout }, format) {
  const seen = data.filter(({ meta }) => meta !== "lines");
  const traces = seen.map((trace, i) => ({ ...trace, uid: `${i}`, ...trace.meta === "mark" && { opacity: 1 } }));
  const plot = document.body.appendChild(document.createElement("div"));
  plot.style.cssText = "position: absolute; left: -10000px; top: 0";
  try {
    await Plotly.newPlot(plot, traces, { ...structuredClone(layout), hovermode: false }, { staticPlot: true });
    const maps = [...plot.querySelectorAll(".hm image")];
    const count = maps.reduce((sum, { __data__: { z } }) => sum + z.length * z[0].length, 0);
    if (oneByOne(count, format)) for (const map of maps) map.replaceWith(await cells(plot, map, format === "pdf" ? 0.5 : 0));
    const hatched = format === "pdf" ? plot.querySelectorAll(".pattern_filled") : [];
    for (const [i, path] of hatched.entries()) hatch(path, `hatch-${i}`);
    for (const line of plot.querySelectorAll(".crisp")) line.setAttribute("shape-rendering", "crispEdges");
    if (format === "pdf")
      for (const crisp of plot.querySelectorAll("[shape-rendering]")) crisp.removeAttribute("shape-rendering");
    for (const styled of plot.querySelectorAll("svg [style]")) {
      const style = styled.getAttribute("style");
      styled.removeAttribute("style");
      styled.setAttribute("style", style);
    }
    return stable(Plotly.Snapshot.toSVG(plot, "svg", 1), plot._fullLayout._uid);
  } finally {
    Plotly.purge(plot);
    plot.remove();
  }
}

// src/page/download.js
var KEPT = 6e4;
async function download({ data, layout }, { format, name, scale, size }) {
  try {
    const file = await pictureOf(window.Plotly, { data, layout }, format, { scale, size: size ?? void 0 });
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: `${name}.${format}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), KEPT);
    return { words: `Saved ${link.download}.`, matters: false };
  } catch (error) {
    return {
      words: `Not saved: ${error instanceof TooLarge ? `${format.toUpperCase()} ` : ""}${error.message}`,
      matters: true
    };
  }
}

// src/page/sent.js
function sent(data) {
  return JSON.parse(new TextDecoder().decode(data));
}

// src/page/saver.js
var told = /* @__PURE__ */ new WeakMap();
async function saver_default({ data, parentElement }) {
  const { figure, ...asked } = sent(data);
  const before = told.get(parentElement);
  const status = parentElement.querySelector(".mha-saver");
  told.set(parentElement, asked.serial);
  if (before !== void 0 && asked.serial !== before) status.textContent = (await download(figure, asked)).words;
}
export {
  saver_default as default
};
