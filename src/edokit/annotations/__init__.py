"""Annotations: who labelled which item how."""
