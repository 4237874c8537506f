"""Laws: the promises of each interface, one folder an interface."""
