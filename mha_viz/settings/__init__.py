"""Settings (what is computed) and Display (how it is shown, the View first), and their spelling in an address and in JSON.

All are frozen and checked on the way in; everything after trusts them. A value that breaks a rule raises Wrong, which names it.
"""

from mha_viz.settings.display import Caching, Diagnosis, Display, Switches, Walk
from mha_viz.settings.rules import ruled_value
from mha_viz.settings.settings import SIDES, Settings
from mha_viz.settings.spelling import from_address, from_json, from_values, parsed, read, spell, to_address, to_json
from mha_viz.settings.steps import LANGUAGES, STEPS
from mha_viz.settings.typed_mask import fit_mask, read_mask, write_mask
from mha_viz.settings.view import ARRANGEMENTS, COLORS, ORDERS, PICTURES, POOLINGS, SCALES, WEIGHTINGS, View

__all__ = [
    "ARRANGEMENTS",
    "COLORS",
    "LANGUAGES",
    "ORDERS",
    "PICTURES",
    "POOLINGS",
    "SCALES",
    "SIDES",
    "STEPS",
    "WEIGHTINGS",
    "Caching",
    "Diagnosis",
    "Display",
    "Settings",
    "Switches",
    "View",
    "Walk",
    "fit_mask",
    "from_address",
    "from_json",
    "from_values",
    "parsed",
    "read",
    "read_mask",
    "ruled_value",
    "spell",
    "to_address",
    "to_json",
    "write_mask",
]
