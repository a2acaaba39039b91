"""HTS-RL: two storages that swap at a barrier."""
