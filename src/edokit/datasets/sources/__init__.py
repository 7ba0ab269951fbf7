"""One file a source of annotations; `edokit.datasets.registry` finds them."""
