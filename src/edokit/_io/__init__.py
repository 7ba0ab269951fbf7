"""Reading tables and JSON with clear errors, and writing files whole or not at all."""
