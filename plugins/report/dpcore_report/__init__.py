"""One page that shows a published run, a function of `public/` only; plots; costs of events."""

provides = {
    # State what events cost, export a model, and write the page of a run or of a ledger.
    "commands": {
        "account": "dpcore_report.account_command:account",
        "export": "dpcore_report.export_command:export",
        "report": "dpcore_report.command:report",
    },
}
