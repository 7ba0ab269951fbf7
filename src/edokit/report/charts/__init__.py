"""The charts of the page, one function each, as Plotly figures."""
