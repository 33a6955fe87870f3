"""Reads the pages of the documentation for tests, and runs the commands and the code that they show."""
