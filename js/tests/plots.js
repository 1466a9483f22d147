// Plots as plain data, with what the modules in src/pure read of Plotly's own.

/** Plotly's axis of `count` cells of so many px, `side`, the first one's centre at position 0, that begins `offset` px into the picture. */
export function axis(offset, side, count) {
  return {
    _offset: offset,
    _length: side * count,
    l2p: (position) => (position + 0.5) * side,
    p2l: (px) => px / side - 0.5,
    c2p: (position) => (position + 0.5) * side,
    range: [-0.5, count - 0.5],
  };
}

/** The same, zoomed to the cells from `first` on that fit into it at twice the size. */
export function zoomed(offset, side, count, first) {
  return {
    ...axis(offset, side, count),
    l2p: (position) => (position + 0.5 - first) * 2 * side,
    p2l: (px) => px / (2 * side) - 0.5 + first,
    range: [first - 0.5, first - 0.5 + count / 2],
  };
}

/** Two small maps of 3 queries and 4 keys, heads 1 and 0, cells of 10 px, and the large one of head 0 in cells of 20 px. */
export function maps(changes = {}) {
  const z = [
    [1, 0, 0, 0],
    [0.25, 0.75, 0, 0],
    [0.125, 0.125, 0.75, 0],
  ];
  const tile = (head, x, y) => ({ head, axes: [x, y], x0: 0, y0: 0 });
  return {
    _fullLayout: {
      xaxis: axis(0, 10, 4),
      xaxis2: axis(50, 10, 4),
      xaxis3: axis(0, 20, 4),
      yaxis: axis(0, 10, 3),
      yaxis2: axis(40, 20, 3),
    },
    _fullData: [
      { name: "head 1", z: z.map((row) => row.toReversed()) },
      { name: "head 0", z },
      { name: "head 0", z },
      // hides key 3 from all queries in the large map
      { name: "masked", legendgroup: "masked", xaxis: "x3", x: [2.5, 3.5, 3.5, 2.5], y: [-0.5, -0.5, 2.5, 2.5] },
    ],
    layout: {
      meta: {
        tiles: [tile(1, "x", "y"), tile(0, "x2", "y"), tile(0, "x3", "y2")],
        sides: [{ queries: ["a", "b", "2"], keys: ["a", "b", "c", "d"], first: [0, 0], blocks: [false, false] }],
        order: [1, 0, 2],
        quantity: "weight",
        ...changes,
      },
    },
  };
}

/** Two heads' lines between 3 queries and 2 keys, 20 px apart, 100 px from side to side, and those of their average. */
export function lines() {
  const side = (x) => ({ x, y: 10, pitch: 20, name: 40 });
  const panel = (head, left) => ({ head, query: side(left), key: side(left + 100) });
  const drawn = (name, customdata) => ({ meta: "lines", name, customdata });
  return {
    _fullData: [
      drawn("head 0", [
        [0, 0, 1, 3],
        [1, 0, 0.25, 1],
        [1, 1, 0.75, 2],
      ]),
      { meta: "other" },
      drawn("head 1", [[2, 1, 1, 3]]),
      drawn("average of 2 heads", [[1, 0, 0.5, 2]]),
    ],
    layout: {
      meta: {
        panels: [panel(0, 50), panel(1, 250), panel(null, 450)],
        queries: ["a", "b", "c"],
        keys: ["x", "y"],
        first: [0, 0],
        blocks: [false, false],
        quantity: "weight",
      },
    },
  };
}

/** Decoding with two of three tokens there: a panel of 2 heads in cells of 10 px. */
export function columns() {
  return {
    _fullLayout: { xaxis: axis(0, 10, 3), yaxis: axis(0, 10, 2) },
    _fullData: [
      { type: "scatter" },
      {
        type: "heatmap",
        z: [
          [1, 0.5, Number.NaN],
          [1, 0.25, Number.NaN],
        ],
      },
    ],
    layout: {
      meta: {
        panels: [
          {
            axes: ["x", "y"],
            rows: ["head 0", "head 1"],
            name: "last query",
            quantity: "weight",
            blanks: ["", "", "still to come"],
          },
        ],
        keys: ["a", "b", "c"],
        tokens: 2,
      },
    },
  };
}
