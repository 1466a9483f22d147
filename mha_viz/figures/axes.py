"""The axes of a picture of heads: where cells stand, what they are called on hover, and which names are drawn."""

from mha_viz.figures.geometry import EDGE

STRIP, HEAD, AVERAGE = ("x", "y"), ("x2", "y2"), ("x3", "y3")  # axes that cells lie on; the pair's zoom together
HEAD_NAMES, AVERAGE_NAMES = ("x4", "y4"), ("x5", "y5")  # axes over the pair's, which draw the few names for which there is room


def axes(place, rows, columns, theme):
    """The layout's axes for a Geometry and the Names of rows and columns.

    Plotly takes a hovered cell's name from its axis' ticks, and draws every tick that an axis has. So the axes that cells lie on
    know all names and draw none; a second pair over each large map draws as many as fit.
    """
    found = _strip(place, rows, columns)
    for box, cells, names, color, thick in (
        (place.head, HEAD, HEAD_NAMES, theme.choice, 3),
        (place.average, AVERAGE, AVERAGE_NAMES, theme.line, 1),
    ):
        for i, (side, ticks, step) in enumerate((("x", columns, place.column_step), ("y", rows, place.row_step))):
            count, first = len(ticks.texts), HEAD[i]
            extent = [-0.5, count - 0.5] if side == "x" else [count - 0.5, -0.5]
            common = {**_axis(place, box, side, extent), "fixedrange": place.stacked}
            found[_named(cells[i])] = {
                **common, "anchor": cells[1 - i], "tickvals": list(range(count)), "ticktext": ticks.exact,
                "showline": True, "mirror": True, "linecolor": color, "linewidth": thick,
                **({} if cells[i] == first else {"matches": first}),
            }  # fmt: skip
            places, texts = ticks.drawn(step, theme)
            found[_named(names[i])] = {
                **common, "anchor": names[1 - i], "overlaying": cells[i], "matches": first, "tickvals": places, "ticktext": texts,
                "showticklabels": True, "tickfont": {"size": 13}, "side": "top" if side == "x" else "left",
                "tickangle": place.column_labels.angle if side == "x" else 0, "ticklabelstandoff": 4,
            }  # fmt: skip
    return found


def _strip(place, rows, columns):
    """One pair of axes for all tiles of the strip, in cells from the first cell of the first tile."""
    strip = place.strip
    step_x, step_y = strip.step[0] / strip.cell[0], strip.step[1] / strip.cell[1]
    above = strip.label_height / strip.cell[1]
    beside = EDGE / strip.cell[0]
    range_x = [-beside - 0.5, strip.area.width / strip.cell[0] - beside - 0.5]
    range_y = [strip.area.height / strip.cell[1] - above - 0.5, -above - 0.5]
    return {
        "xaxis": {
            **_axis(place, strip.area, "x", range_x), "anchor": "y", "fixedrange": True, "ticktext": columns.exact * strip.columns,
            "tickvals": [column * step_x + i for column in range(strip.columns) for i in range(len(columns.exact))],
        },
        "yaxis": {
            **_axis(place, strip.area, "y", range_y), "anchor": "x", "fixedrange": True, "ticktext": rows.exact * strip.rows,
            "tickvals": [row * step_y + i for row in range(strip.rows) for i in range(len(rows.exact))],
        },
    }  # fmt: skip


def _axis(place, box, side, extent):
    """An axis along one side of ``box`` that draws nothing."""
    along_x, along_y = [box.x / place.width, box.right / place.width], [1 - box.bottom / place.height, 1 - box.y / place.height]
    return {
        "domain": along_x if side == "x" else along_y, "range": extent, "tickmode": "array", "showticklabels": False, "ticks": "",
        "showgrid": False, "zeroline": False, "automargin": False,
    }  # fmt: skip


def _named(axis):
    """ "x2" → "xaxis2": a trace's name for an axis, and the layout's."""
    return f"{axis[0]}axis{axis[1:]}"
