// The browser's half of live.py: draws the figure in place, and answers pointer and keys without asking the server.

const CONFIG = { displayModeBar: false, doubleClick: "reset", showTips: false };
const PATIENCE = 1500; // ms that a first picture of the wrong width waits for the right one
let count = 0; // of pictures, for ids
const pictures = new WeakMap(); // a component's element → its Picture, which outlives every update

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  let picture = pictures.get(parentElement);
  if (!picture) pictures.set(parentElement, (picture = new Picture(parentElement)));
  picture.send = { setStateValue, setTriggerValue };
  picture.show(JSON.parse(new TextDecoder().decode(data)));
  // Streamlit also cleans up after calls that newer ones overtook: only an element that has left the page is done with.
  return () => setTimeout(() => parentElement.isConnected || picture.close());
}

class Picture {
  constructor(root) {
    const find = (selector) => root.querySelector(selector);
    this.frame = find(".mha-live");
    this.plot = find(".mha-maps");
    this.canvas = find(".mha-marks");
    this.tip = find(".mha-tip");
    this.button = find(".mha-reset");
    this.status = find("[role=status]");
    find(".mha-keys").id = `mha-keys-${++count}`;
    this.plot.setAttribute("aria-describedby", `mha-keys-${count}`);
    this.chosen = this.pointed = null; // cells: { tile, query, key }, tile an index into meta.tiles
    this.gone = new AbortController();
    this.listen(this.gone.signal);
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(this.frame);
  }

  close() {
    this.gone.abort();
    this.observer.disconnect();
    clearTimeout(this.resizing);
    if (this.drawn) window.Plotly.purge(this.plot);
  }

  // Drawing ---------------------------------------------------------------------------------------------------------

  show({ figure, alt }) {
    this.next = figure;
    this.plot.setAttribute("aria-label", alt);
    this.drawing ??= this.draw().finally(() => (this.drawing = null));
  }

  async draw() {
    const Plotly = await plotly();
    if (!this.drawn) await this.rightWidth();
    while (this.next) {
      const { data, layout } = this.next;
      const unanswered = this.sending && this.cell(this.chosen); // chosen here while this figure was on its way
      this.next = null;
      this.figure = { data, layout };
      this.meta = layout.meta;
      this.zoomable = Object.keys(layout).filter((name) => /^[xy]axis/.test(name) && !layout[name].fixedrange && !layout[name].matches);
      this.ranges = this.zoomable.map((axis) => [...layout[axis].range]);
      // The marks of a saved figure are drawn here on the canvas instead, where they follow at once.
      for (const trace of data) if (trace.meta === "mark") trace.opacity = 0;
      const zoomed = this.drawn && layout.uirevision === this.revision;
      this.revision = layout.uirevision;
      this.name(layout, (axis) => (zoomed ? this.plot._fullLayout : layout)[axis].range);
      await this.react();
      if (!this.drawn) this.plot.on("plotly_relayouting", () => this.marks()).on("plotly_relayout", () => this.rename());
      this.drawn = true;
      this.chosen = this.settled(unanswered || layout.meta.chosen);
      this.zoomed();
      this.point(this.over && this.cellAt(this.over.clientX, this.over.clientY), this.over);
    }
  }

  react() {
    const { data, layout } = this.figure;
    return window.Plotly.react(this.plot, data, { ...layout, hovermode: false }, CONFIG);
  }

  // A first picture made for another width would be replaced at once: rather wait for its successor.
  async rightWidth() {
    const started = performance.now();
    while (this.next.layout.width !== this.width() && performance.now() - started < PATIENCE) {
      this.reportWidth();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  width() {
    return Math.max(320, Math.floor(this.frame.clientWidth / 8) * 8);
  }

  reportWidth() {
    const width = this.width();
    if (this.frame.clientWidth && width !== this.reported) this.send.setStateValue("width", (this.reported = width));
  }

  resized() {
    clearTimeout(this.resizing);
    this.resizing = setTimeout(() => this.drawn && this.figure.layout.width !== this.width() && this.reportWidth(), 150);
  }

  // Zoom ------------------------------------------------------------------------------------------------------------

  // Puts those names of tokens beside a map for which there is room: a zoomed axis has room for more.
  name(layout, rangeOf) {
    for (const { axes, texts, pitch } of this.meta.names)
      for (const axis of axes) {
        const [from, to] = rangeOf(axis), [start, end] = layout[axis].domain;
        const cell = ((end - start) * (axis[0] === "x" ? layout.width : layout.height)) / Math.abs(to - from);
        const step = STEPS.find((step) => step * cell >= pitch - 1e-6);
        const tickvals = texts.map((_, i) => i).filter((i) => i % step === 0);
        Object.assign(layout[axis], { tickvals, ticktext: tickvals.map((i) => texts[i]) });
      }
  }

  zoomed() {
    const moved = (axis, i) => this.plot._fullLayout[axis].range.some((end, j) => Math.abs(end - this.ranges[i][j]) > 1e-6);
    const zoomed = this.zoomable.some(moved);
    if (!zoomed && document.activeElement === this.button) this.plot.focus();
    this.button.hidden = !zoomed;
    const { paper_bgcolor, font } = this.figure.layout;
    const [across, down] = this.meta.tiles.at(-1).axes.map((axis) => this.axis(axis));
    Object.assign(this.button.style, { background: paper_bgcolor, color: font.color, top: `${down._offset + down._length + 5}px` });
    this.button.style.left = `${Math.max(0, across._offset + across._length - this.button.offsetWidth)}px`;
    this.marks();
  }

  rename() {
    const drawn = () => JSON.stringify(this.meta.names.map(({ axes }) => this.figure.layout[axes[0]].tickvals));
    const before = drawn();
    this.name(this.figure.layout, (axis) => this.plot._fullLayout[axis].range);
    if (drawn() !== before) this.react();
    this.zoomed();
  }

  resetZoom() {
    window.Plotly.relayout(this.plot, Object.fromEntries(this.zoomable.map((axis, i) => [`${axis}.range`, [...this.ranges[i]]])));
  }

  // Cells -----------------------------------------------------------------------------------------------------------

  // The cell under a point of the window, or null.
  cellAt(clientX, clientY) {
    const box = this.plot.getBoundingClientRect();
    for (let tile = 0; tile < this.meta.tiles.length; tile++) {
      const { axes: [x, y], x0, y0 } = this.meta.tiles[tile];
      const key = index(this.axis(x), clientX - box.left, x0, this.meta.keys.length);
      const query = key === null ? null : index(this.axis(y), clientY - box.top, y0, this.meta.queries.length);
      if (query !== null) return { tile, query, key };
    }
    return null;
  }

  axis(id) {
    return this.plot._fullLayout[`${id[0]}axis${id.slice(1)}`];
  }

  value({ tile, query, key }) {
    return this.plot._fullData[tile].z[query][key];
  }

  // The look of a cell that holds no weight, as the legend calls it; null for any other.
  look({ tile, query, key }) {
    const { axes, x0, y0 } = this.meta.tiles[tile];
    const hatch = this.plot._fullData.find((t) => t.legendgroup && t.xaxis === axes[0] && inside(t, x0 + key, y0 + query));
    return hatch ? hatch.name : null;
  }

  // The large map of the chosen head, where it is drawn as `settled` and reached by keys.
  settled({ head, query, key }) {
    return { tile: this.meta.tiles.findLastIndex((tile) => tile.head === head), query, key };
  }

  choose(cell) {
    this.chosen = cell;
    this.marks();
    this.status.textContent = this.words(cell).join(", ");
    clearTimeout(this.sending); // a held arrow key sends its last cell only
    this.sending = setTimeout(() => {
      this.sending = null;
      this.send.setTriggerValue("cell", this.cell(cell));
    }, 80);
  }

  // A cell as the server knows it: tiles change their places.
  cell({ tile, query, key }) {
    return { head: this.meta.tiles[tile].head, query, key };
  }

  words(cell) {
    const name = (kind, i, text) => `${kind} ${i}` + (text === String(i) ? "" : ` “${text}”`);
    const value = this.value(cell), look = this.look(cell);
    const weight = Number.isFinite(value) ? `weight ${written(value)}` : null;
    return [
      this.plot._fullData[cell.tile].name,
      name("query", cell.query, this.meta.queries[cell.query]),
      name("key", cell.key, this.meta.keys[cell.key]),
      weight, look,
    ].filter(Boolean);
  }

  // Pointer and keys ------------------------------------------------------------------------------------------------

  listen(signal) {
    let pressed = null;
    const at = (event) => (this.drawn ? this.cellAt(event.clientX, event.clientY) : null);
    this.plot.addEventListener("pointerdown", (event) => (pressed = event), true);
    // Plotly lays a sheet over the window while a button is down, so the release is heard there.
    window.addEventListener("pointerup", (event) => {
      if (!pressed) return;
      const still = Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) < 5;
      const cell = still && event.button === 0 ? at(event) : null;
      pressed = null;
      if (cell) this.choose(cell);
    }, { capture: true, signal });
    window.addEventListener("pointercancel", () => (pressed = null), { signal }); // a finger that scrolls the page
    this.plot.addEventListener("pointermove", (event) => {
      this.over = event;
      this.frameAsked ??= requestAnimationFrame(() => {
        this.frameAsked = null;
        this.point(pressed || !this.over ? null : at(this.over), this.over);
      });
    }, true);
    this.plot.addEventListener("pointerleave", () => {
      this.over = null;
      this.point(null);
    });
    this.plot.addEventListener("keydown", (event) => this.drawn && this.pressed(event));
    this.button.addEventListener("click", () => this.resetZoom());
  }

  pressed(event) {
    const { tile, query, key } = this.chosen;
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const turn = { PageUp: -1, PageDown: 1 }[event.key];
    if (event.key === "Escape") this.resetZoom();
    else if (step) {
      const within = (i, count) => Math.min(Math.max(i, 0), count - 1);
      this.choose({ tile, query: within(query + step[0], this.meta.queries.length), key: within(key + step[1], this.meta.keys.length) });
    } else if (turn) {
      const strip = this.meta.tiles.length - 2;
      const now = this.meta.tiles.findIndex(({ head }) => head === this.meta.tiles[tile].head);
      this.choose({ tile: (Math.min(now, strip - 1) + turn + strip) % strip, query, key });
    } else return;
    event.preventDefault();
  }

  point(cell, event) {
    if (!this.drawn) return;
    this.pointed = cell;
    this.tip.hidden = !cell;
    if (cell) {
      const [head, query, key, ...rest] = this.words(cell);
      this.tip.textContent = [head, `${query} → ${key}`, ...rest].join("\n");
      const { font, paper_bgcolor, width, height } = this.figure.layout;
      const box = this.plot.getBoundingClientRect(), tip = this.tip.getBoundingClientRect();
      const beside = (at, size, all) => (at + 16 + size <= all ? at + 16 : Math.max(0, at - 16 - size));
      const x = beside(event.clientX - box.left, tip.width, width), y = beside(event.clientY - box.top, tip.height, height);
      Object.assign(this.tip.style, { background: paper_bgcolor, color: font.color, transform: `translate(${x}px, ${y}px)` });
    }
    this.marks();
  }

  // Marks -----------------------------------------------------------------------------------------------------------

  // The chosen and the pointed cell, in every tile at once.
  marks() {
    const { width, height, font, paper_bgcolor } = this.figure.layout;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== width * ratio || this.canvas.height !== height * ratio) {
      Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
      Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    for (const { axes: [x, y], x0, y0 } of this.meta.tiles) {
      const across = this.axis(x), down = this.axis(y);
      pen.save();
      pen.beginPath();
      pen.rect(across._offset - 4, down._offset - 4, across._length + 8, down._length + 8);
      pen.clip();
      for (const [cell, halo, line] of [[this.pointed, 3, 1], [this.chosen, 5, 2]]) {
        if (!cell) continue;
        const [left, right] = edges(across, x0, cell.key, this.meta.keys.length);
        const [top, bottom] = edges(down, y0, cell.query, this.meta.queries.length);
        for (const [style, thick] of [[paper_bgcolor, halo], [font.color, line]]) {
          Object.assign(pen, { strokeStyle: style, lineWidth: thick });
          pen.strokeRect(left, top, right - left, bottom - top);
        }
      }
      pen.restore();
    }
  }
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

// Which of `count` cells on an axis, the first one's centre at `first`, is at this px; null beside them.
function index(axis, px, first, count) {
  if (px < axis._offset || px > axis._offset + axis._length) return null;
  const i = Math.round(axis.p2l(px - axis._offset) - first);
  return 0 <= i && i < count ? i : null;
}

// Whether a point lies in one of a trace's polygons, between which there are gaps: it crosses an odd number of their sides.
function inside({ x, y }, atX, atY) {
  let odd = false;
  for (let i = 0, start = 0; i < x.length; i++) {
    if (Number.isNaN(x[i])) { start = i + 1; continue; }
    const j = i + 1 < x.length && !Number.isNaN(x[i + 1]) ? i + 1 : start;
    if (y[i] > atY !== y[j] > atY && x[i] > atX) odd = !odd; // sides are vertical or level
  }
  return odd;
}

// The px of an outline that lies within cell i of `count`, or around one that is too small, and within the tile: see marks in tiles.py.
function edges(axis, first, i, count) {
  const px = (position) => axis._offset + axis.l2p(position);
  const [low, high] = [px(first - 0.5), px(first + count - 0.5)].sort((p, q) => p - q);
  const side = (high - low) / count, half = side >= 16 ? side / 2 - 2.5 : Math.max(side / 2, 4);
  const centre = Math.max(low + half + 2.5, Math.min(high - half - 2.5, px(first + i)));
  return [centre - half, centre + half];
}

function written(value) {
  return value !== 0 && Math.abs(value) < 1e-6 ? value.toExponential(2) : value.toFixed(6);
}

// Streamlit loads Plotly with the first chart of its own on a page: live.py puts a hidden one there.
async function plotly() {
  while (!window.Plotly) await new Promise((resolve) => setTimeout(resolve, 20));
  return window.Plotly;
}
