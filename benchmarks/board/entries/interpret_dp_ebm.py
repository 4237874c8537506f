"""DP-EBM adds noise for the range of the target, and publishes sums of the target itself."""

LIBRARY, VERSION = "interpret-core", "0.7.8"
PINS = ["interpret-core==0.7.8"]
REFERENCE = "https://github.com/interpretml/interpret/issues/523"
FIXED = "closed as no bug"
CLAIM = {"epsilon": 1.0, "delta": 1e-5}
RELATION = "add_remove"
DRAWS = 2000
_ROWS = [0.4 * i / 300 for i in range(300)] + [0.6 + 0.4 * i / 300 for i in range(1, 301)]
PAIR = (_ROWS, [*_ROWS, 0.02])
CONTROL = "targets between -500 and 500, all 0"


def release(records, middle=9500.0, target=10_000.0):
    """A prediction without what the other records give it, by published weights only."""
    import numpy as np
    from interpret.privacy import DPExplainableBoostingRegressor

    model = DPExplainableBoostingRegressor(
        epsilon=1.0,
        delta=1e-5,
        max_rounds=10,
        max_bins=3,
        learning_rate=0.01,
        feature_types=["continuous"],
        privacy_bounds={0: (0.0, 1.0)},
        privacy_target_min=middle - 500.0,
        privacy_target_max=middle + 500.0,
        n_jobs=1,
        random_state=None,
    )
    model.fit(np.array(records)[:, None], np.full(len(records), target))
    weights = np.ravel(model.bin_weights_[0])
    # Both halves may share one bin; an attacker sees which, and knows all other records.
    fraction = len(_ROWS) / np.count_nonzero(weights)
    weight = float(weights[1])
    without = target * (1 - (1 - 0.01 * fraction / weight) ** 10)
    prediction = float(model.predict(np.array([[0.02]]))[0])
    return (prediction - without) * weight / float(model.noise_scale_boosting_)


def control(records):
    """The same where the target is as large as its range."""
    return release(records, middle=0.0, target=0.0)
