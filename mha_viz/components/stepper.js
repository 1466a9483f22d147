// Bundled from js/src/page/stepper.js by make bundle. Its comments stand there, and changes belong there.
// sha256 63a6944593136b5d3d56a9933b2db79214b2e48d50529f0dc76a20f9194f7189
// src/pure/stepped.js
function stepped(text, by) {
  const found = /^\s*([0-9]+)(?:\.([0-9]*))?(?:[eE]\+?([0-9]{1,2}))?\s*$/.exec(text);
  if (!found) return null;
  let [, whole, decimals = "", power = "0"] = found;
  while (+power > 0) {
    whole += decimals[0] ?? "0";
    decimals = decimals.slice(1);
    power--;
  }
  const number = BigInt(whole + decimals) + BigInt(by);
  if (number < 0n) return null;
  const digits = String(number).padStart(decimals.length + 1, "0");
  return decimals ? `${digits.slice(0, -decimals.length)}.${digits.slice(-decimals.length)}` : digits;
}

// src/page/stepper.js
var FIELD = "[data-testid=stTextInput] input[autocomplete=off]";
var WIDTH = 54;
var DIGIT = 8;
var EDGE = 14;
var PAUSE = 250;
var set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
function step(field, by) {
  const text = field.disabled ? null : stepped(field.value, by);
  if (text === null) return;
  set.call(field, text);
  field.dispatchEvent(new Event("input", { bubbles: true }));
  clearTimeout(field.later);
  field.later = setTimeout(() => field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true })), PAUSE);
}
var Pair = class {
  constructor(box) {
    this.box = box;
    this.button(box.firstElementChild, -1);
    this.button(box.lastElementChild, 1);
  }
  button(button, by) {
    button.addEventListener("mousedown", (event) => event.preventDefault());
    button.addEventListener("click", () => this.field && step(this.field, by));
  }
  lie(field) {
    this.field = field;
    const frame = field?.parentElement.getBoundingClientRect();
    const taken = frame && Math.max(EDGE + DIGIT * field.value.length, WIDTH);
    const fits = frame && !field.disabled && taken + WIDTH <= frame.width;
    if (Boolean(fits) !== this.box.matches(":popover-open")) this.box.togglePopover();
    if (!fits) return;
    const { backgroundColor } = getComputedStyle(field.parentElement);
    const { color } = getComputedStyle(field);
    const place = { left: `${frame.right - WIDTH}px`, top: `${frame.top + 1}px`, height: `${frame.height - 2}px` };
    Object.assign(this.box.style, { backgroundColor, color, ...place });
  }
};
function stepper_default({ parentElement }) {
  const box = parentElement.querySelector(".mha-stepper");
  if (box.pair) return box.pair.stop;
  const pair = new Pair(box);
  box.pair = pair;
  document.mhaStepper?.();
  const fieldAt = (event) => event.target.closest?.("[data-testid=stTextInput]")?.querySelector(FIELD);
  const current = () => document.activeElement?.matches(FIELD) ? document.activeElement : null;
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
    }
  };
  for (const [name, act] of Object.entries(heard)) document.addEventListener(name, act, true);
  pair.stop = () => {
    for (const [name, act] of Object.entries(heard)) document.removeEventListener(name, act, true);
  };
  document.mhaStepper = pair.stop;
  return pair.stop;
}
export {
  stepper_default as default
};
