// The browser's half of links.py: a click on a link of the app is passed on once what was typed or pressed before it has been sent.
//
// Streamlit sends what a field holds in a task of its own, after the field has lost its focus, and a click on a link at once. A tap, which
// presses and lets go in one moment, would overtake what was typed: its page would be left before it was heard.

const LINK = "[data-testid=stPageLink-NavLink]:not([target=_blank])";
const passed = new WeakSet(); // links that are clicked from here

function hold(event) {
  const link = event.target.closest?.(LINK);
  if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // another tab or window
  if (passed.delete(link)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const pass = () => {
    passed.add(link);
    link.click();
  };
  setTimeout(() => setTimeout(pass)); // what is to be sent may wait for a task itself before it asks for one
}

export default function () {
  document.mhaLinks ??= document.addEventListener("click", hold, true) ?? true; // of all pages: each has such links
}
