"""GA3C: agents, predictors and trainers around one model."""
