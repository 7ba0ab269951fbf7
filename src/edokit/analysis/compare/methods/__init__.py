"""The methods that `compare` knows, one file a family; `method.py` beside has what they share."""
