"""Numbers about heads, computed from a Trace."""

from mha_viz.analysis.average import Hidden, what_average_hides
from mha_viz.analysis.causes import Finding, findings
from mha_viz.analysis.choice import Choice, choose
from mha_viz.analysis.compare import Change, Common, common, largest_changes
from mha_viz.analysis.difference import difference_from_average
from mha_viz.analysis.layout import WrongLayout, pytorch_error, wrong_layout
from mha_viz.analysis.number import Derivation, open_number
from mha_viz.analysis.statistics import STATISTICS, Statistic, statistic

__all__ = [
    "STATISTICS",
    "Change",
    "Choice",
    "Common",
    "Derivation",
    "Finding",
    "Hidden",
    "Statistic",
    "WrongLayout",
    "choose",
    "common",
    "difference_from_average",
    "findings",
    "largest_changes",
    "open_number",
    "pytorch_error",
    "statistic",
    "what_average_hides",
    "wrong_layout",
]
