"""The joint loss, what it needs to know of the data, and the weights it is a function of."""
