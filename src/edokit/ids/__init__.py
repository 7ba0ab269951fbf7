"""Names are strings everywhere, and things are matched by name, never by position."""

from edokit.ids.columns import (
    Codes,
    Encoded,
    column_of,
    encode,
    recode,
    row_number,
    text_array,
)
from edokit.ids.names import (
    Strings,
    as_name,
    as_names,
    check_positions,
    check_unique,
    class_order,
    match,
)

__all__ = [
    "Codes",
    "Encoded",
    "Strings",
    "as_name",
    "as_names",
    "check_positions",
    "check_unique",
    "class_order",
    "column_of",
    "encode",
    "match",
    "recode",
    "row_number",
    "text_array",
]
