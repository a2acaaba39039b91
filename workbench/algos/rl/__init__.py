"""Deep reinforcement learning: environments, networks, and the systems that train them."""
