"""Wrong and right components around a release: metrics, sources, engines, commands, events."""
