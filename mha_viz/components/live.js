// The browser's half of live.py: draws the figure in place, and answers pointer and keys without asking the server. What there is to
// point at and to choose, a spot, is known to the figure's kind alone: see Maps, Lines and Columns.

const CONFIG = { displayModeBar: false, doubleClick: false, showTips: false };
const TWICE = 400; // ms between the clicks of a double click
const HELD = 80; // ms after which an arrow key is no longer held: until then its spots are not sent
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
    this.keys = find(".mha-keys");
    this.keys.id = `mha-keys-${++count}`;
    this.plot.setAttribute("aria-describedby", `mha-keys-${count}`);
    this.kind = this.chosen = this.pointed = null; // the two latter are spots of this kind
    this.choices = []; // that the server has not answered yet
    this.gone = new AbortController();
    this.listen(this.gone.signal);
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(this.frame);
  }

  close() {
    this.gone.abort();
    this.observer.disconnect();
    clearTimeout(this.resizing);
    clearTimeout(this.sending);
    this.next = this.kind = null; // what is under way draws and answers nothing more
    // Plotly would miss what is purged while it draws.
    Promise.resolve(this.drawing).finally(() => this.drawn && window.Plotly.purge(this.plot));
  }

  // Drawing ---------------------------------------------------------------------------------------------------------

  show({ figure, alt, save, answered, zooms }) {
    this.next = figure;
    this.zooms = zooms;
    this.choices = this.choices.filter(({ serial }) => serial > answered);
    this.serial = Math.max(this.serial ?? 0, answered);
    this.saving = save;
    this.plot.setAttribute("aria-label", alt);
    this.drawing ??= this.draw().finally(() => (this.drawing = null));
  }

  async draw() {
    const Plotly = await plotly();
    if (!this.drawn) await this.rightWidth();
    while (this.next) {
      const { data, layout } = this.next;
      // What was chosen here while this figure was on its way.
      const unanswered = this.choices.length && this.meta.kind === layout.meta.kind && this.kind.sent(this.chosen);
      this.next = null;
      this.figure = { data, layout };
      this.meta = layout.meta;
      this.zoomable = Object.keys(layout).filter((name) => /^[xy]axis/.test(name) && !layout[name].fixedrange && !layout[name].matches);
      this.ranges = this.zoomable.map((axis) => [...layout[axis].range]);
      this.given = Object.keys(layout).filter((name) => /^[xy]axis/.test(name)).map((name) => [name, [...layout[name].range]]);
      // The marks of a saved figure are drawn here on the canvas instead, where they follow at once.
      for (const trace of data) if (trace.meta === "mark") trace.opacity = 0;
      const zoomed = this.drawn && layout.uirevision === this.revision;
      this.revision = layout.uirevision;
      this.name(layout, (axis) => (zoomed ? this.plot._fullLayout : layout)[axis].range);
      this.kind = null; // answers nothing until it is drawn
      await this.react();
      if (!this.drawn) this.plot.on("plotly_relayouting", () => this.marks()).on("plotly_relayout", () => this.rename());
      this.drawn = true;
      if (this.gone.signal.aborted) return;
      this.kind = new ({ lines: Lines, decoding: Columns }[layout.meta.kind] ?? Maps)(this.plot);
      this.keys.textContent = this.kind.keys;
      this.plot.setAttribute("aria-roledescription", this.kind.role);
      this.plot.dataset.kind = layout.meta.kind ?? "maps";
      this.chosen = this.kind.settled(unanswered || layout.meta.chosen);
      this.zoomed();
      this.point(this.over && this.at(this.over), this.over);
    }
    this.save();
  }

  // Saves what is on screen, or another figure, where the server asks for it with a serial that is new since the picture is here.
  async save() {
    const before = this.saved, { serial = 0, figure, ...asked } = this.saving ?? {};
    this.saved = serial;
    if (before === undefined || serial === 0 || serial === before) return;
    const { words, matters } = await download(figure ?? this.plot, asked);
    this.say(words, matters);
  }

  // To who hears the page, and where it `matters` to all.
  say(words, matters = false) {
    this.status.textContent = words;
    this.status.classList.toggle("mha-unseen", !matters);
  }

  react() {
    const { data, layout } = this.figure;
    // Zooming writes the new ranges here. Given back to Plotly they would count as the figure's own, and the next figure end the zoom.
    for (const [name, range] of this.given) layout[name] = { ...layout[name], range: [...range] };
    // A standing bar that is to lie, or the other way round, Plotly moves off the picture, with its texts twice: so it makes a new one.
    const lies = ({ coloraxis, coloraxis9 }) => (coloraxis9 ?? coloraxis)?.colorbar?.orientation === "h";
    if (this.drawn && lies(layout) !== lies(this.plot._fullLayout)) for (const bar of this.plot.querySelectorAll(".colorbar")) bar.remove();
    return window.Plotly.react(this.plot, data, { ...layout, hovermode: false }, CONFIG);
  }

  // A first picture made for another width would be replaced at once: rather wait for its successor.
  async rightWidth() {
    const started = performance.now();
    while (this.next && this.next.layout.width !== this.width() && performance.now() - started < PATIENCE) {
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
    this.marks();
    if (!zoomed) return;
    const { paper_bgcolor, font } = this.figure.layout;
    const [across, down] = this.meta.tiles.at(-1).axes.map((id) => axis(this.plot, id));
    Object.assign(this.button.style, { background: paper_bgcolor, color: font.color, top: `${down._offset + down._length + 5}px` });
    this.button.style.left = `${Math.max(0, across._offset + across._length - this.button.offsetWidth)}px`;
  }

  rename() {
    const drawn = () => JSON.stringify(this.meta.names.map(({ axes }) => this.figure.layout[axes[0]].tickvals));
    const before = drawn();
    this.name(this.figure.layout, (axis) => this.plot._fullLayout[axis].range);
    if (drawn() !== before) this.react();
    this.zoomed();
    if (this.zooms && !this.button.hidden) this.send.setTriggerValue("zoom", this.seen());
  }

  // The cells of the last map that are in sight, [query, query, key, key], each side's first and one beyond its last.
  seen() {
    const { axes: [x, y], x0, y0 } = this.meta.tiles.at(-1), { queries, keys } = this.kind.side(this.meta.tiles.length - 1);
    return [[y, y0, queries], [x, x0, keys]].flatMap(([id, first, names]) => {
      const [low, high] = [...axis(this.plot, id).range].sort((p, q) => p - q).map((end) => Math.round(end - first + 0.5));
      const start = within(low, names.length);
      return [start, Math.max(start + 1, Math.min(high, names.length))];
    });
  }

  resetZoom() {
    window.Plotly.relayout(this.plot, Object.fromEntries(this.zoomable.map((axis, i) => [`${axis}.range`, [...this.ranges[i]]])));
  }

  ground() {
    return getComputedStyle(this.frame).backgroundColor;
  }

  // Choosing --------------------------------------------------------------------------------------------------------

  at(event) {
    const box = this.plot.getBoundingClientRect();
    return this.kind ? this.kind.at(event.clientX - box.left, event.clientY - box.top) : null;
  }

  // Clicks are all sent, and again with the next until the server answers: of what reaches it while it is busy Streamlit keeps the
  // last only. What keys merely moved to gives way to whatever follows.
  choose(spot, pressed) {
    this.chosen = spot;
    this.marks();
    this.say(this.kind.words(spot).join(", "));
    const choice = { ...this.kind.sent(spot), pressed, serial: ++this.serial };
    this.choices = [...this.choices.filter((earlier) => earlier.pressed), choice];
    clearTimeout(this.sending);
    const send = () => this.send.setTriggerValue("cell", this.choices);
    if (pressed) send();
    else this.sending = setTimeout(send, HELD);
  }

  // Pointer and keys ------------------------------------------------------------------------------------------------

  listen(signal) {
    let pressed = null, before = -Infinity;
    this.plot.addEventListener("pointerdown", (event) => (pressed = event), true);
    // Plotly lays a sheet over the window while a button is down, so the release is heard there.
    window.addEventListener("pointerup", (event) => {
      if (!pressed) return;
      const still = Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) < 5;
      const spot = still && event.button === 0 ? this.at(event) : null;
      pressed = null;
      if (spot) this.choose(spot, true);
      // Not left to Plotly, for which an update between the clicks makes them two.
      if (still && event.timeStamp - before < TWICE) this.resetZoom();
      before = still ? event.timeStamp : -Infinity;
    }, { capture: true, signal });
    window.addEventListener("pointercancel", () => (pressed = null), { signal }); // a finger that scrolls the page
    this.plot.addEventListener("pointermove", (event) => {
      this.over = event;
      this.frameAsked ??= requestAnimationFrame(() => {
        this.frameAsked = null;
        this.point(pressed || !this.over ? null : this.at(this.over), this.over);
      });
    }, true);
    this.plot.addEventListener("pointerleave", () => {
      this.over = null;
      this.point(null);
    });
    this.plot.addEventListener("keydown", (event) => this.kind && this.pressed(event));
    // The stylesheet lets the ground's colour change in a moment, not at once: which tells when it does, whoever changed it.
    this.frame.addEventListener("transitionend", (event) => event.target === this.frame && this.send.setStateValue("ground", this.ground()));
    this.button.addEventListener("click", () => this.resetZoom());
  }

  pressed(event) {
    const spot = this.kind.reached(event.key, this.chosen, event.shiftKey);
    if (spot) this.choose(spot, false);
    else if (event.key === "Enter" || event.key === " ") this.press(event.repeat);
    else if (event.key !== "Escape") return;
    else if (this.button.hidden) this.send.setTriggerValue("reset", true);
    else this.resetZoom();
    event.preventDefault();
    event.stopPropagation(); // what moves in the picture turns no page as well
  }

  press(held) {
    if (!held && (this.chosen.query !== null || this.chosen.key !== null)) this.choose(this.chosen, true);
  }

  point(spot, event) {
    if (!this.kind) return;
    this.pointed = spot;
    this.tip.hidden = !spot;
    this.plot.classList.toggle("mha-over", Boolean(spot));
    if (spot) {
      this.tip.textContent = this.kind.tip(spot);
      const { font, paper_bgcolor, width, height } = this.figure.layout;
      const box = this.plot.getBoundingClientRect(), tip = this.tip.getBoundingClientRect();
      const beside = (at, size, all) => (at + 16 + size <= all ? at + 16 : Math.max(0, at - 16 - size));
      const x = beside(event.clientX - box.left, tip.width, width), y = beside(event.clientY - box.top, tip.height, height);
      Object.assign(this.tip.style, { background: paper_bgcolor, color: font.color, transform: `translate(${x}px, ${y}px)` });
    }
    this.marks();
  }

  // What is chosen and what is pointed at, drawn over the picture.
  marks() {
    if (!this.kind) return;
    const { width, height } = this.figure.layout;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== width * ratio || this.canvas.height !== height * ratio) {
      Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
      Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.kind.mark(pen, this.pointed, this.chosen);
  }
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

// Plotly's own axis for a trace's name of it: "x2".
function axis(plot, id) {
  return plot._fullLayout[`${id[0]}axis${id.slice(1)}`];
}

// A token as the tip and the status name it.
function named(kind, i, text) {
  return `${kind} ${i}` + (text === String(i) ? "" : ` “${text}”`);
}

function within(i, count) {
  return Math.min(Math.max(i, 0), count - 1);
}

function written(value) {
  return (value !== 0 && Math.abs(value) < 1e-6 ? value.toExponential(2) : value.toFixed(6)).replace(/-/g, "−");
}

// Streamlit loads Plotly with the first chart of its own on a page: live.py puts a hidden one there.
async function plotly() {
  while (!window.Plotly) await new Promise((resolve) => setTimeout(resolve, 20));
  return window.Plotly;
}
