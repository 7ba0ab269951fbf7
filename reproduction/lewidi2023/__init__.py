"""LeWiDi 2023: the EDO paper's four datasets."""
