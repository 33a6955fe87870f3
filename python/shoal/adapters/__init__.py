"""Shoal's replay inside other libraries: one module per library, none of which is imported before it is asked for.

`shoal.adapters.stable_baselines3`, `shoal.adapters.tianshou` and `shoal.adapters.torchrl`.
"""
