"""The completion rate α: how much of the full grid of configurations and phases ran."""


def completion_rate(completed: int, n_configs: int, n_phases: int) -> float:
    """Compute α, the share of all W0·Np phases that ran to their end (arXiv 1902.02725, Sec. 4).

    Parameters
    ----------
    completed : int
        Phases that ended with a score; what is restarted counts again, as in the paper. While a study runs, α is what
        has been done so far.
    n_configs, n_phases : int
        The paper's W0 and Np, what running everything would take: configurations, or members of a population
        (`workbench.core.size.full_runs`), and phases of each.

    Returns
    -------
    float
        Between 0 and 1; above where what was restarted outweighs what was stopped.
    """
    return completed / (n_configs * n_phases)
