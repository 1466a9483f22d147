"""Where attention comes from: a module or a folder for each kind of source, listed here in the order of the sidebar."""

from mha_viz.sources.base import SOURCES
from mha_viz.sources.files.kind import FILE
from mha_viz.sources.pretrained.kind import PRETRAINED
from mha_viz.sources.synthetic import RANDOM, TINY_CASE
from mha_viz.sources.trained import SHIPPED

SOURCES |= {kind.name: kind for kind in (RANDOM, TINY_CASE, SHIPPED, PRETRAINED, FILE)}
