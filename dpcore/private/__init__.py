"""The only code that sees a record: from a plan and its records to released answers."""
