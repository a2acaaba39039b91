"""The kinds a study file and a recorded study may name, and where each lives; imported only when used."""

SEARCHERS = {
    "cost-aware": "workbench.algos.search.cost_aware:CostAwareSearcher",
    "evolution": "workbench.algos.search.evolution:EvolutionSearcher",
    "grid": "workbench.algos.search.searchers:GridSearcher",
    "informed": "workbench.algos.search.informed:InformedSearcher",
    "list": "workbench.algos.search.searchers:ListSearcher",
    "optuna": "workbench.algos.search.optuna:OptunaSearcher",
    "random": "workbench.algos.search.searchers:RandomSearcher",
    "smac": "workbench.algos.search.smac:SMACSearcher",
}

SCHEDULERS = {
    "asha": "workbench.algos.search.asha:ASHA",
    "full": "workbench.algos.search.full:FullRuns",
    "halving": "workbench.algos.search.halving:SuccessiveHalving",
    "hyperband": "workbench.algos.search.hyperband:Hyperband",
    "hypertrick": "workbench.algos.search.hypertrick:HyperTrick",
    "median": "workbench.algos.search.median:MedianStopping",
    "mfpbt": "workbench.algos.search.mfpbt:MFPBT",
    "pasha": "workbench.algos.search.pasha:PASHA",
    "pb2": "workbench.algos.search.pb2:PB2",
    "pbt": "workbench.algos.search.pbt:PBT",
    "portfolio": "workbench.algos.search.portfolio:Portfolio",
    "seeded": "workbench.algos.search.seeded:Seeded",
    "sure": "workbench.algos.search.sure:Sure",
    "topk": "workbench.algos.search.topk:TopK",
}

TRAINABLES = {
    "a3c": "workbench.algos.rl.a3c.trial:A3C",
    "ba3c": "workbench.algos.rl.ba3c.trial:BA3C",
    "digits": "workbench.algos.digits.classifier:DigitsClassifier",
    "digits-gan": "workbench.algos.digits.gan:DigitsGAN",
    "ga3c": "workbench.algos.rl.ga3c.trial:GA3C",
    "games": "workbench.algos.games:Games",
    "hts": "workbench.algos.rl.hts.trial:HTS",
    "quadratic": "workbench.algos.quadratic:Quadratic",
    "replay": "workbench.algos.replay:Replay",
    "sb3": "workbench.algos.rl.sb3.factory:SB3",
}

REGISTRY = SEARCHERS | SCHEDULERS | TRAINABLES
