"""EDO and what it is compared with: methods by name, and all of them side by side."""
