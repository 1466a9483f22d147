// px of the page. mha_viz/components/live.py holds widths to the same rule.

const LEAST = 320; // px wide

/** The px that a picture makes use of where there are so many: a multiple of 8, so that few widths are drawn, and no less than that. */
export function usableWidth(px) {
  return Math.max(LEAST, Math.floor(px / 8) * 8);
}

/** Where a tip of this `size` begins beside the pointer, on the side where there is room in `all` px. */
export function beside(pointer, size, all) {
  return pointer + 16 + size <= all ? pointer + 16 : Math.max(0, pointer - 16 - size);
}
