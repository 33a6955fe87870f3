"""Shoal's replay inside other libraries: one module per library. None is imported before you import it.

`shoal.adapters.stable_baselines3`, `shoal.adapters.tianshou` and `shoal.adapters.torchrl`.
"""
