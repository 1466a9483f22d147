"""What stands around the maps: caption, titles, labels of the strip, colour bar, legend."""

import numpy as np

from mha_viz.figures.axes import AVERAGE, HEAD, STRIP
from mha_viz.figures.labels import width_of

_MEASURE = "Jensen–Shannon divergence of its rows: 0 % equal, 100 % no key in common"
CAPTIONS = {  # per order, the first that fits
    "difference": (
        f"Every head, the one that differs most from the average first ({_MEASURE})",
        "Heads by how much they differ from the average (Jensen–Shannon)",
        "Heads by difference from the average",
    ),
    "index": (
        f"Every head by its number, and how much it differs from the average ({_MEASURE})",
        "Heads, and how much they differ from the average (Jensen–Shannon)",
        "Heads: difference from the average",
    ),
}


def percent(difference):
    """A difference from 0 to 1 as a person reads it: 37 %, 3.2 %, n/a."""
    return "n/a" if np.isnan(difference) else f"{100 * difference:.{1 if difference < 0.0995 else 0}f} %"


def texts(place, choice, H, order, theme):
    """The caption of the strip, and the titles and axis names of the two large maps, as annotations."""
    captions = CAPTIONS.get(order, CAPTIONS["index"])
    caption = next((text for text in captions if width_of(text, 13) < place.width), captions[-1])
    found = [_text(place, 0, 9, caption, 13, theme.soft)]
    soft = f"<span style='color:{theme.soft};font-size:14px'>"
    differs = f"differs {percent(choice.differences[choice.head])}"
    further = f"{differs} from the average"
    names = (
        f"<b>head {choice.head}</b> {soft}{further if place.head.width >= 270 else differs}</span>",
        f"<b>average of {H} head{'s' if H > 1 else ''}</b>",
    )
    for box, name in zip((place.head, place.average), names, strict=True):
        title = place.title(box)
        found.append(_text(place, title.x, title.y + title.height / 2, name, 17, theme.text))
        axes = "key → is read<br>query ↓ asks"
        found.append(_text(place, box.x - 8, box.y - 18, axes, 13, theme.soft, xanchor="right", align="right"))
    return found


def _text(place, x, y, text, size, color, **more):
    return {
        "text": text, "x": x / place.width, "y": 1 - y / place.height, "xref": "paper", "yref": "paper", "xanchor": "left",
        "yanchor": "middle", "align": "left", "showarrow": False, "borderpad": 0, "font": {"size": size, "color": color}, **more,
    }  # fmt: skip


def undefined_words(place, head_looks, average_looks, theme):
    """The word "undefined" as an annotation on each block of undefined rows that has room for it, up to sixteen."""
    found = []
    for looks, axes in ((head_looks, HEAD), (average_looks, AVERAGE)):
        rows = looks["undefined"][0].any(axis=1)  # [L]
        edges = np.flatnonzero(np.diff(np.concatenate([[False], rows, [False]])))
        for top, bottom in edges.reshape(-1, 2).tolist():
            if (bottom - top) * place.cell[1] >= 16 and len(found) < 16:
                found.append({
                    "text": "undefined", "x": 0.5, "xref": f"{axes[0]} domain", "y": (top + bottom - 1) / 2, "yref": axes[1],
                    "showarrow": False, "bgcolor": theme.paper, "borderpad": 1, "font": {"size": 13, "color": theme.text},
                })  # fmt: skip
    return found


def strip_labels(strip, origins, choice, theme):
    """The name above each tile, with its difference from the average, as one trace of texts."""
    head, differs = {"line": ("head ", " differs "), "lines": ("head ", "<br>differs "), "percent": ("", " ")}[strip.words]
    names = [
        f"<b>{head}{h}</b><span style='color:{theme.soft}'>{differs}{percent(choice.differences[h])}</span>"
        for h in choice.order
    ]
    x, y = (origins - [0.5, 0.5 + 3 / strip.cell[1]]).T  # 3 px above the tile's corner
    return {
        "type": "scatter", "mode": "text", "x": x, "y": y, "xaxis": STRIP[0], "yaxis": STRIP[1], "text": names,
        "textposition": "top right", "textfont": {"size": 13 if strip.words == "percent" else 14, "color": theme.text},
        "cliponaxis": False, "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip


def bar(place, theme):
    """The one colour bar: beside the average, or below it where the maps are stacked."""
    box, title = place.bar, {"text": "weight", "font": {"size": 14}, "side": "top" if place.stacked else "right"}
    return {
        "x": box.x / place.width, "xanchor": "left", "xpad": 0, "y": 1 - box.y / place.height, "yanchor": "top", "ypad": 0,
        "orientation": "h" if place.stacked else "v", "len": box.width if place.stacked else box.height, "lenmode": "pixels",
        "thickness": 14, "outlinewidth": 1, "outlinecolor": theme.line, "tickfont": {"size": 13}, "nticks": 6, "ticks": "outside",
        "ticklen": 3, "tickcolor": theme.line, "title": title,
    }  # fmt: skip


def legend(place, theme):
    """What each hatch means, in a line below everything."""
    return {
        "orientation": "h", "x": 0, "xanchor": "left", "y": 1 - place.legend.y / place.height, "yanchor": "top",
        "bgcolor": "rgba(0,0,0,0)", "font": {"size": 14, "color": theme.text}, "itemclick": False, "itemdoubleclick": False,
        "itemsizing": "constant", "tracegroupgap": 0,
    }  # fmt: skip
