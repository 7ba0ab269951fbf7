"""The verbs that describe data and methods: evaluate, compare, search, diagnose, plan, audit.

Each has three parts: statistics (arrays in, numbers out), a result (a frozen dataclass), and text
(sentences and tables made of a result).
"""
