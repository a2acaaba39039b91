"""Deep reinforcement learning: environments, networks, and the systems that train them.

What all systems share stands here; GA3C, A3C, BA3C and HTS-RL each have a package that holds its data flow.
"""
