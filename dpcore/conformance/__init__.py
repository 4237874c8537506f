"""The promises of each interface, as checks that any plugin can run; and a search for broken ones.

Nothing here opens a user's records: every dataset is made up inside a declared domain.
"""
