"""PRIVATE: records, as the private side sees them."""
