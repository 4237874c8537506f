"""Laboratory: noise, measured by many draws and by words that a stream would hardly give."""
