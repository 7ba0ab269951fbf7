"""Where annotations come from: files of all kinds, the LeWiDi datasets, the simulator."""
