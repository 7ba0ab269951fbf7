"""The paper's tables and figures again, on the real data, beside the paper's own numbers."""

from edokit.reproduce.run import TABLES, reproduce, results_page
from edokit.reproduce.section import Section
from edokit.reproduce.study import Missing, Study, find_data, find_predictions

__all__ = [
    "TABLES",
    "Missing",
    "Section",
    "Study",
    "find_data",
    "find_predictions",
    "reproduce",
    "results_page",
]
