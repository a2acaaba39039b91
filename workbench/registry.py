"""The kinds a study file and a recorded study may name, and where each lives; imported only when used."""

SEARCHERS = {
    "random": "workbench.algos.search.searchers:RandomSearcher",
    "grid": "workbench.algos.search.searchers:GridSearcher",
    "evolution": "workbench.algos.search.evolution:EvolutionSearcher",
    "optuna": "workbench.algos.search.optuna:OptunaSearcher",
    "list": "workbench.algos.search.searchers:ListSearcher",
}

SCHEDULERS = {
    "asha": "workbench.algos.search.asha:ASHA",
    "full": "workbench.algos.search.full:FullRuns",
    "halving": "workbench.algos.search.halving:SuccessiveHalving",
    "hyperband": "workbench.algos.search.hyperband:Hyperband",
    "hypertrick": "workbench.algos.search.hypertrick:HyperTrick",
    "pbt": "workbench.algos.search.pbt:PBT",
    "portfolio": "workbench.algos.search.portfolio:Portfolio",
    "median": "workbench.algos.search.median:MedianStopping",
}

TRAINABLES = {
    "ga3c": "workbench.algos.rl.ga3c:GA3C",
}

REGISTRY = SEARCHERS | SCHEDULERS | TRAINABLES
