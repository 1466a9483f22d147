// Arrow keys, and a − and a + while somebody points at a field for a number or is in it. Each moves the last digit that stands there, so
// that 8 becomes 9 and 0.1 becomes 0.2. Text that is no number is left alone.

import { stepped } from "../pure/stepped.js";

const FIELD = "[data-testid=stTextInput] input[autocomplete=off]";
const WIDTH = 54; // px of − and +
const DIGIT = 8; // px of a digit at most
const EDGE = 14; // px before the first digit
const PAUSE = 250; // ms after the last step until the server hears of it, so that a held key asks once
const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;

function step(field, by) {
  const text = field.disabled ? null : stepped(field.value, by);
  if (text === null) return;
  set.call(field, text);
  field.dispatchEvent(new Event("input", { bubbles: true }));
  clearTimeout(field.later);
  field.later = setTimeout(() => field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true })), PAUSE);
}

// The buttons, one pair for all fields, laid over the end of the one that is pointed at or typed in.
class Pair {
  constructor(box) {
    this.box = box;
    this.button(box.firstElementChild, -1);
    this.button(box.lastElementChild, 1);
  }

  button(button, by) {
    button.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps its cursor
    button.addEventListener("click", () => this.field && step(this.field, by));
  }

  lie(field) {
    this.field = field;
    const frame = field?.parentElement.getBoundingClientRect();
    const taken = frame && Math.max(EDGE + DIGIT * field.value.length, WIDTH); // at least half is the field's, to click into
    const fits = frame && !field.disabled && taken + WIDTH <= frame.width;
    if (Boolean(fits) !== this.box.matches(":popover-open")) this.box.togglePopover(); // in the top layer, above sidebar and dialogs
    if (!fits) return;
    const { backgroundColor } = getComputedStyle(field.parentElement); // a sidebar has its own
    const { color } = getComputedStyle(field);
    const place = { left: `${frame.right - WIDTH}px`, top: `${frame.top + 1}px`, height: `${frame.height - 2}px` };
    Object.assign(this.box.style, { backgroundColor, color, ...place });
  }
}

export default function ({ parentElement }) {
  const box = parentElement.querySelector(".mha-stepper");
  if (box.pair) return box.pair.stop;
  const pair = new Pair(box);
  box.pair = pair;
  document.mhaStepper?.(); // one of another page, should it still be heard: a key is one step
  const fieldAt = (event) => event.target.closest?.("[data-testid=stTextInput]")?.querySelector(FIELD);
  const current = () => (document.activeElement?.matches(FIELD) ? document.activeElement : null);
  let pointed = null;
  const lie = () => pair.lie(pointed ?? current());
  const heard = {
    pointermove: (event) => {
      if (event.composedPath().includes(box)) return;
      pointed = fieldAt(event) ?? null;
      lie();
    },
    focusin: lie,
    focusout: lie,
    input: lie,
    scroll: lie,
    keydown: (event) => {
      if (!["ArrowUp", "ArrowDown"].includes(event.key) || !event.target.matches?.(FIELD)) return;
      event.preventDefault();
      step(event.target, event.key === "ArrowUp" ? 1 : -1);
    },
  };
  for (const [name, act] of Object.entries(heard)) document.addEventListener(name, act, true);
  pair.stop = () => {
    for (const [name, act] of Object.entries(heard)) document.removeEventListener(name, act, true);
  };
  document.mhaStepper = pair.stop;
  return pair.stop;
}
