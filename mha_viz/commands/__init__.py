"""What ``python -m mha_viz`` can do, a command a file: each says its options (``options``) and does it (``run``)."""

from mha_viz.commands import export, profile, quality, serve, train, validate

COMMANDS = {"run": serve, "train": train, "validate": validate, "profile": profile, "quality": quality, "export": export}
