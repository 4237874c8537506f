"""A paper's tables and figures as specs: run as printed, and compared cell by cell."""

provides = {
    # Run what a paper prints, and compute what it states.
    "commands": {
        "reproduce": "dpcore_experiments.commands.reproduce:reproduce",
        "theory": "dpcore_experiments.commands.theory:theory",
    },
}
