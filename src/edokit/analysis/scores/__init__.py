"""Scores of methods on the same items, with intervals and paired tests.

Evaluations, comparisons, pages and runs share them.
"""
