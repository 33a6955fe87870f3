"""The documentation as the tests see it: its pages, what they say to type, and the means to type that."""
