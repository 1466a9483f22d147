"""How attention is seen inside a model that runs: its modules, its operators, their masks, and what first became NaN."""
