"""Laws: the promises of each interface, one file an interface."""
