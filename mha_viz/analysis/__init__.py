"""Numbers about heads, computed from a Trace."""

from mha_viz.analysis.average import Hidden, what_average_hides
from mha_viz.analysis.causes import Finding, findings
from mha_viz.analysis.choice import Choice, choose
from mha_viz.analysis.compare import Change, Common, common, largest_changes
from mha_viz.analysis.difference import difference_from_average
from mha_viz.analysis.examples import Example, strongest
from mha_viz.analysis.layout import WrongLayout, pytorch_error, wrong_layout
from mha_viz.analysis.norms import norm_weighted, shown_trace, why_no_norms, why_not_weighted
from mha_viz.analysis.number import Derivation, open_number
from mha_viz.analysis.similarity import Alike, HeadsLike, head_distances, heads_like
from mha_viz.analysis.statistics import STATISTICS, Statistic, statistic, why_not
from mha_viz.analysis.table import HeadRow, HeadTable, head_table

__all__ = [
    "STATISTICS",
    "Alike",
    "Change",
    "Choice",
    "Common",
    "Derivation",
    "Example",
    "Finding",
    "HeadRow",
    "HeadTable",
    "HeadsLike",
    "Hidden",
    "Statistic",
    "WrongLayout",
    "choose",
    "common",
    "difference_from_average",
    "findings",
    "head_distances",
    "head_table",
    "heads_like",
    "largest_changes",
    "norm_weighted",
    "open_number",
    "pytorch_error",
    "shown_trace",
    "statistic",
    "strongest",
    "what_average_hides",
    "why_no_norms",
    "why_not",
    "why_not_weighted",
    "wrong_layout",
]
