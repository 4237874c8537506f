"""Noise for probabilities, a proportion of the records, is added to the counts of a Bayesian
network.
"""

LIBRARY, VERSION = "DataSynthesizer", "0.1.4"
_HOSTS = ["numpy==1.26.4", "pandas==1.5.3", "scikit-learn==1.3.2"]
PINS = ["--no-deps DataSynthesizer==0.1.4", *_HOSTS]
REFERENCE = "https://github.com/DataResponsibly/DataSynthesizer/issues/34"
FIXED = "by 0.1.13"
FIXED_ENVIRONMENT = "DataSynthesizer-0.1.13"
FIXED_PINS = ["--no-deps DataSynthesizer==0.1.13", *_HOSTS]
CLAIM = {"epsilon": 1.0}
RELATION = "add_remove"
DRAWS = 300
PAIR = ([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, [[0, 0], [0, 1], [1, 0], [1, 1]] * 5 + [[1, 1]])
CONTROL = "version 0.1.13"


def release(records):
    """The conditional distributions of a network of two attributes, which spend all of epsilon."""
    import pandas as pd
    from DataSynthesizer.lib import PrivBayes

    table = pd.DataFrame(records, columns=["a", "b"])
    network = [("b", ["a"])]
    return PrivBayes.construct_noisy_conditional_distributions(network, table, CLAIM["epsilon"])
