"""The methods that `compare` knows; `edokit.analysis.compare.method` has what they share."""
