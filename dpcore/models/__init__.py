"""What a model publishes: lines, shapes, tables of numbers, error bars, and how it shows them."""
