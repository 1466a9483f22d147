// Where keys lead. What leads nowhere, for which functions return null, is the page's.

import { within } from "./axes.js";

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const PAGES = { PageUp: -1, PageDown: 1 };

/** The cell { query, key } to which an arrow leads in a map of so many queries and keys. */
export function cellReached(pressed, { query, key }, queries, keys) {
  const step = ARROWS[pressed];
  return step ? { query: within(query + step[0], queries), key: within(key + step[1], keys) } : null;
}

/** The head to which a key leads in this `order`: Page Up and Page Down go round, Tab ends beyond the last head, and Shift Tab before the
 * first, so that it leads on through the page. The head of an average is null, so what leads nowhere is undefined here. */
export function headReached(pressed, shift, head, order) {
  const turn = { ...PAGES, Tab: shift ? -1 : 1 }[pressed];
  if (!turn) return undefined;
  const next = order.indexOf(head) + turn;
  return order[pressed === "Tab" ? next : (next + order.length) % order.length];
}

/** The panel of lines to which Page Up or Page Down leads among so many heads; beyond them stands their average. */
export function panelReached(pressed, panel, heads) {
  const turn = PAGES[pressed];
  return turn && heads > 1 ? (Math.min(panel, heads - 1) + turn + heads) % heads : null;
}

/** The token { query, key }, one of them null, to which an arrow leads from one in focus, or from a line's query. */
export function tokenReached(pressed, { query, key }, queries, keys) {
  const side = query === null && key !== null ? "key" : "query";
  const i = (side === "key" ? key : query) ?? 0;
  const to = { ArrowUp: side, ArrowDown: side, ArrowLeft: "query", ArrowRight: "key" }[pressed];
  if (!to) return null;
  const next = i + ARROWS[pressed][0]; // across it is the one beside
  return { query: null, key: null, [to]: within(next, to === "query" ? queries : keys) };
}

/** The one of `count` tokens in a row to which a key leads. */
export function placeReached(pressed, i, count) {
  const next = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: count - 1 }[pressed];
  return next === undefined ? null : within(next, count);
}
