"""What ``python -m mha_viz`` can do, a command a file: each says its options (``options``) and does it (``run``)."""
