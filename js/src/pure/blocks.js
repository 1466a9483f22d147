// Where a map has fewer blocks than cells, each stands for several: cell i of n lies in block ⌊i · blocks / n⌋, as Pool of
// mha_viz/core/pool.py has it.

/** The block of cell i, and the first and the last cell of that block. */
export function blockOf(i, cells, blocks) {
  const block = Math.floor((i * blocks) / cells);
  return { block, first: Math.ceil((block * cells) / blocks), last: Math.ceil(((block + 1) * cells) / blocks) - 1 };
}
