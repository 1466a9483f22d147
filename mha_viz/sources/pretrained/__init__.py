"""Pretrained models: a person's text in, what every layer of the model attends to out.

The model is on this machine already: one that a package ships, a folder, or what the hub's own tools keep. Nothing is fetched.
"""

from mha_viz.sources.pretrained.folders import names_folder
from mha_viz.sources.pretrained.library import warm_up
from mha_viz.sources.pretrained.load import check_named
from mha_viz.sources.pretrained.run import peak_of, pretrained
from mha_viz.sources.pretrained.settings import Pretrained
from mha_viz.sources.pretrained.shipped import shipped_models

__all__ = ["Pretrained", "check_named", "names_folder", "peak_of", "pretrained", "shipped_models", "warm_up"]
