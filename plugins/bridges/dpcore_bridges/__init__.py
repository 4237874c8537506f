"""dpcore and other toolkits, one module or folder a toolkit; each is imported when it is used."""
