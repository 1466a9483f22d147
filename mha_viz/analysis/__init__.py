"""Numbers about heads, computed from a Trace."""

from mha_viz.analysis.choice import Choice, choose
from mha_viz.analysis.difference import difference_from_average
from mha_viz.analysis.number import Derivation, open_number
from mha_viz.analysis.statistics import STATISTICS, Statistic, statistic

__all__ = [
    "STATISTICS",
    "Choice",
    "Derivation",
    "Statistic",
    "choose",
    "difference_from_average",
    "open_number",
    "statistic",
]
