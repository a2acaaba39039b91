"""Trials that are no reinforcement learning: a classifier and a GAN on scikit-learn's images of digits."""
