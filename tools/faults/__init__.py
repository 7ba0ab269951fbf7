"""What goes wrong on real machines, done on purpose: `python tools/faults --minutes 10`."""
