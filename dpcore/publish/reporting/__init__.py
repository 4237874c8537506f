"""One page that shows a published run: a function of `public/` alone (the extra `report`)."""
