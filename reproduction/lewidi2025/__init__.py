"""LeWiDi 2025: members' predictions on dev as tables, and a submission for test."""
