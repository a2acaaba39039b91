"""Stable-Baselines3 and sb3-contrib: any of their algorithms as a trial (extra ``sb3``)."""
