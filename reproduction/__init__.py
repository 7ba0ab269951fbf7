"""The paper's tables and checks, made again on the real data; not part of the library."""
