"""Trials that are no reinforcement learning: a classifier and a GAN on scikit-learn's digits.

Small enough for a laptop, and real: what is learned is judged on images held out.
"""
