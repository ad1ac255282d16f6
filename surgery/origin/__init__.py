"""Where the nodes of a model come from: modules and Python lines, as its exporter noted them."""
