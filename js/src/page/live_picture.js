// A figure that is drawn in place, and answers pointer and keys without asking the server. What there is to point at and to choose, a
// spot, is known to the figure's kind alone: see Maps, Lines and Columns.

import { paintColumns } from "../painting/columns.js";
import { paintLines } from "../painting/lines.js";
import { paintMaps } from "../painting/maps.js";
import { axisOf, inSight } from "../pure/axes.js";
import { unanswered, withChoice } from "../pure/choices.js";
import { Columns } from "../pure/columns.js";
import { Lines } from "../pure/lines.js";
import { Maps } from "../pure/maps.js";
import { ticks } from "../pure/names.js";
import { beside, usableWidth } from "../pure/places.js";
import { download } from "./download.js";
import { untilPlotly } from "./plotly.js";

const CONFIG = { displayModeBar: false, doubleClick: false, showTips: false };
const TWICE = 400; // ms between the clicks of a double click
const HELD = 80; // ms after which an arrow key is no longer held: until then its spots are not sent
const PATIENCE = 1500; // ms that a first picture of the wrong width waits for the right one, and that a page may take to settle
const BOX = ".st-key-overview_box"; // which mha_viz/app/heads.py puts around all layers, and style.css keeps low
const SETTLED = 150; // ms without a change, after which a width is told
const KINDS = {
  maps: { Kind: Maps, paint: paintMaps },
  lines: { Kind: Lines, paint: paintLines },
  decoding: { Kind: Columns, paint: paintColumns },
};
let count = 0; // of pictures, for ids

export class LivePicture {
  constructor(root) {
    const find = (selector) => root.querySelector(selector);
    this.frame = find(".mha-live");
    this.plot = find(".mha-maps");
    this.canvas = find(".mha-marks");
    this.tip = find(".mha-tip");
    this.button = find(".mha-reset");
    this.status = find("[role=status]");
    this.keys = find(".mha-keys");
    count += 1;
    this.keys.id = `mha-keys-${count}`;
    this.plot.setAttribute("aria-describedby", `mha-keys-${count}`);
    this.kind = null; // what knows of spots, and `paint` draws them
    this.chosen = null; // spots of this kind, as is `pointed`
    this.pointed = null;
    this.revealed = null; // the tile that was brought into sight last
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
    this.next = null;
    this.kind = null; // what is under way draws and answers nothing more
    // Plotly would miss what is purged while it draws.
    Promise.resolve(this.drawing).finally(() => this.drawn && window.Plotly.purge(this.plot));
  }

  // Drawing ---------------------------------------------------------------------------------------------------------

  show({ figure, alt, save, answered, zooms }) {
    this.next = figure;
    this.zooms = zooms;
    this.choices = unanswered(this.choices, answered);
    this.serial = Math.max(this.serial ?? 0, answered);
    this.saving = save;
    this.plot.setAttribute("aria-label", alt);
    this.drawing ??= this.draw().finally(() => {
      this.drawing = null;
    });
  }

  async draw() {
    await untilPlotly();
    if (!this.drawn) await this.rightWidth();
    while (this.next) {
      const { data, layout } = this.next;
      // What was chosen here while this figure was on its way.
      const waiting = this.choices.length && this.meta.kind === layout.meta.kind && this.kind.sent(this.chosen);
      this.next = null;
      this.figure = { data, layout };
      this.meta = layout.meta;
      this.zoomable = Object.keys(layout).filter(
        (name) => /^[xy]axis/.test(name) && !layout[name].fixedrange && !layout[name].matches,
      );
      this.ranges = this.zoomable.map((axis) => [...layout[axis].range]);
      this.given = Object.keys(layout)
        .filter((name) => /^[xy]axis/.test(name))
        .map((name) => [name, [...layout[name].range]]);
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
      const { Kind, paint } = KINDS[layout.meta.kind] ?? KINDS.maps;
      this.kind = new Kind(this.plot);
      this.paint = paint;
      this.keys.textContent = this.kind.keys;
      this.plot.setAttribute("aria-roledescription", this.kind.role);
      this.plot.dataset.kind = layout.meta.kind ?? "maps";
      this.chosen = this.kind.settled(waiting || layout.meta.chosen);
      this.zoomed();
      this.point(this.over && this.at(this.over), this.over);
      this.reveal();
    }
    this.save();
  }

  // In the box of all layers, brings the chosen tile into sight when it is another one, and keeps it there while the page around it is
  // still being drawn; else the box stays as somebody scrolled it.
  reveal() {
    const box = this.frame.closest(BOX);
    const { tile } = this.chosen;
    if (!box || tile === this.revealed) return;
    this.revealed = tile;
    const until = performance.now() + PATIENCE;
    const touched = new AbortController();
    for (const hand of ["wheel", "pointerdown", "keydown"])
      box.addEventListener(hand, () => touched.abort(), { capture: true, passive: true, signal: touched.signal });
    const bring = () => {
      if (touched.signal.aborted || this.gone.signal.aborted || this.revealed !== tile) return;
      if (!this.kind) return requestAnimationFrame(bring); // it is being drawn anew
      const { axes, y0 } = this.meta.tiles[tile];
      const down = axisOf(this.plot, axes[1]);
      const [first, last] = [0, this.kind.side(tile).queries.length - 1].map((i) => down._offset + down.l2p(y0 + i));
      const seen = box.getBoundingClientRect();
      const away = this.plot.getBoundingClientRect().top + (first + last) / 2 - (seen.top + seen.height / 2);
      if (Math.abs(away) > (seen.height - Math.abs(last - first)) / 2) box.scrollTop += away;
      if (performance.now() < until) requestAnimationFrame(bring);
      else touched.abort();
    };
    bring();
  }

  // Saves what is on screen, or another figure, where the server asks for it with a serial that is new since the picture is here.
  async save() {
    const before = this.saved;
    const { serial = 0, figure, ...asked } = this.saving ?? {};
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
    if (this.drawn && lies(layout) !== lies(this.plot._fullLayout))
      for (const bar of this.plot.querySelectorAll(".colorbar")) bar.remove();
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
    return usableWidth(this.frame.clientWidth);
  }

  reportWidth() {
    const width = this.width();
    if (!this.frame.clientWidth || width === this.reported) return;
    this.reported = width;
    this.send.setStateValue("width", width);
  }

  resized() {
    clearTimeout(this.resizing);
    this.resizing = setTimeout(() => this.drawn && this.figure.layout.width !== this.width() && this.reportWidth(), SETTLED);
  }

  // Zoom ------------------------------------------------------------------------------------------------------------

  // Puts those names of tokens beside a map for which there is room: a zoomed axis has room for more.
  name(layout, rangeOf) {
    for (const { axes, texts, pitch } of this.meta.names)
      for (const axis of axes) {
        const [from, to] = rangeOf(axis);
        const [start, end] = layout[axis].domain;
        const cell = ((end - start) * (axis[0] === "x" ? layout.width : layout.height)) / Math.abs(to - from);
        Object.assign(layout[axis], ticks(texts, pitch, cell));
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
    const [across, down] = this.meta.tiles.at(-1).axes.map((id) => axisOf(this.plot, id));
    Object.assign(this.button.style, {
      background: paper_bgcolor,
      color: font.color,
      top: `${down._offset + down._length + 5}px`,
    });
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
    const { axes, x0, y0 } = this.meta.tiles.at(-1);
    const { queries, keys } = this.kind.side(this.meta.tiles.length - 1);
    const [across, down] = axes.map((id) => axisOf(this.plot, id).range);
    return [...inSight(down, y0, queries.length), ...inSight(across, x0, keys.length)];
  }

  resetZoom() {
    window.Plotly.relayout(
      this.plot,
      Object.fromEntries(this.zoomable.map((axis, i) => [`${axis}.range`, [...this.ranges[i]]])),
    );
  }

  ground() {
    return getComputedStyle(this.frame).backgroundColor;
  }

  // Choosing --------------------------------------------------------------------------------------------------------

  at(event) {
    const box = this.plot.getBoundingClientRect();
    return this.kind ? this.kind.at(event.clientX - box.left, event.clientY - box.top) : null;
  }

  // Clicks are all sent, and again with the next until the server answers.
  choose(spot, pressed) {
    this.chosen = spot;
    this.marks();
    this.say(this.kind.words(spot).join(", "));
    this.serial += 1;
    this.choices = withChoice(this.choices, { ...this.kind.sent(spot), pressed, serial: this.serial });
    clearTimeout(this.sending);
    const send = () => this.send.setTriggerValue("cell", this.choices);
    if (pressed) send();
    else this.sending = setTimeout(send, HELD);
  }

  // Pointer and keys ------------------------------------------------------------------------------------------------

  listen(signal) {
    let pressed = null; // where a button went down
    let before = Number.NEGATIVE_INFINITY; // when it last went up
    const press = (event) => {
      pressed = event;
    };
    this.plot.addEventListener("pointerdown", press, true);
    // Plotly lays a sheet over the window while a button is down, so the release is heard there.
    window.addEventListener(
      "pointerup",
      (event) => {
        if (!pressed) return;
        const still = Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) < 5;
        const spot = still && event.button === 0 ? this.at(event) : null;
        pressed = null;
        if (spot) this.choose(spot, true);
        // Not left to Plotly, for which an update between the clicks makes them two.
        if (still && event.timeStamp - before < TWICE) this.resetZoom();
        before = still ? event.timeStamp : Number.NEGATIVE_INFINITY;
      },
      { capture: true, signal },
    );
    window.addEventListener("pointercancel", () => press(null), { signal }); // a finger that scrolls the page
    this.plot.addEventListener(
      "pointermove",
      (event) => {
        this.over = event;
        this.frameAsked ??= requestAnimationFrame(() => {
          this.frameAsked = null;
          this.point(pressed || !this.over ? null : this.at(this.over), this.over);
        });
      },
      true,
    );
    this.plot.addEventListener("pointerleave", () => {
      this.over = null;
      this.point(null);
    });
    this.plot.addEventListener("keydown", (event) => this.kind && this.pressed(event));
    // The stylesheet lets the ground's colour change in a moment, not at once: which tells when it does, whoever changed it.
    this.frame.addEventListener(
      "transitionend",
      (event) => event.target === this.frame && this.send.setStateValue("ground", this.ground()),
    );
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
      const box = this.plot.getBoundingClientRect();
      const tip = this.tip.getBoundingClientRect();
      const x = beside(event.clientX - box.left, tip.width, width);
      const y = beside(event.clientY - box.top, tip.height, height);
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
    this.paint(pen, this.kind, this.pointed, this.chosen);
  }
}
