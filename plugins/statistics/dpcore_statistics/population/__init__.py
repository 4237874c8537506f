"""Population: intervals of the numbers of the population that the records were drawn from.

Pure functions of released numbers and public facts: none of them sees a record.
"""
