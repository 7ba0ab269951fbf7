"""One file a recipe, named like it; files that begin with ``_`` are parts of recipes."""
