"""What ``mha_viz`` holds, for editors and type checkers: at run time each name is imported when it is first used."""

from mha_viz.core.attend import attend as attend
from mha_viz.core.batch import Batch as Batch
from mha_viz.core.decode import decode as decode
from mha_viz.core.decode import share_kv as share_kv
from mha_viz.core.intervention import Intervention as Intervention
from mha_viz.core.intervention import changed as changed
from mha_viz.core.layer import Layer as Layer
from mha_viz.core.long import pooled as pooled
from mha_viz.core.rules import Wrong as Wrong
from mha_viz.core.trace import Trace as Trace
from mha_viz.export.notebook import average as average
from mha_viz.export.notebook import difference as difference
from mha_viz.export.notebook import head as head
from mha_viz.export.notebook import heads as heads
from mha_viz.export.notebook import layers as layers
from mha_viz.export.notebook import lines as lines
from mha_viz.export.notebook import page as page
from mha_viz.export.notebook import pair as pair
from mha_viz.recording import Recording as Recording
from mha_viz.recording import load as load
from mha_viz.settings import Settings as Settings
from mha_viz.settings import View as View
from mha_viz.sources.pretrained import Pretrained as Pretrained
from mha_viz.sources.pretrained import pretrained as pretrained
from mha_viz.sources.recorded import record as record
from mha_viz.sources.synthetic import synthetic as synthetic
from mha_viz.sources.trained import Trained as Trained
from mha_viz.sources.trained import trained as trained

__version__: str
