"""The domain: declared public facts about the records."""
