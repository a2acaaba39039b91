"""HTS-RL (Liu, Yeh & Schwing, NeurIPS 2020): how much faster, and that it repeats."""
