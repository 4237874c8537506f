"""Mechanisms of this plugin: a threshold found in private, and counts above one."""
