"""What a run reads, what it records, and the folder that it writes to."""
