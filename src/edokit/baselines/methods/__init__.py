"""One file a method; every file here is found by itself."""
