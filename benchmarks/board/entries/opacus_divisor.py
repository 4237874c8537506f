"""The mean gradient is divided by the number of records times the rate, rounded down."""

LIBRARY, VERSION = "opacus", "1.6.0"
PINS = ["torch==2.13.0", "opacus==1.6.0"]
REFERENCE = "https://github.com/meta-pytorch/opacus/issues/571"
FIXED = "open since 2023"
CLAIM = {"epsilon": 0.55, "delta": 1e-5}
RELATION = "add_remove"
DRAWS = 400
PAIR = ([0.0] * 16, [0.0] * 15)
CONTROL = "16 records and 16"


def _step(records):
    """One private step from 0 on zero features; the engine and the model."""
    import warnings

    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    warnings.simplefilter("ignore")
    model = torch.nn.Linear(2000, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    data = TensorDataset(torch.zeros(len(records), 2000), torch.zeros(len(records), 1))
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=DataLoader(data, batch_size=8),
        noise_multiplier=4.0,
        max_grad_norm=1.0,
    )
    features, targets = next(iter(loader))
    torch.nn.functional.mse_loss(model(features), targets).backward()
    optimizer.step()
    return engine, model


def claimed(_):
    """Epsilon after one step, by the engine's own accountant."""
    engine, _ = _step(PAIR[0])
    return engine.get_epsilon(CLAIM["delta"])


def release(records):
    """The root mean square of the published weights."""
    _, model = _step(records)
    return float(next(model.parameters()).square().mean().sqrt())


def control(records):
    """The same with 16 records on either side."""
    return release(PAIR[0])
