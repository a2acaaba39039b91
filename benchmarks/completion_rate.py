"""HyperTrick's completion rate at several sizes, in percent, beside Eq. 9: for scores that differ, and for plateaus."""

import argparse
import json

from workbench.paper.hypertrick.completion import CASES, SCORES, measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    table = []
    for case in CASES:
        row = {"W0": case.n_trials, "Np": case.n_phases, "r": case.eviction_rate, "nodes": case.nodes}
        row["Eq. 9"] = round(100 * case.expected, 2)
        for name, draw in SCORES.items():
            mean, error = measure(case, draw, arguments.runs, arguments.seed)
            row[name] = {"mean": round(100 * mean, 2), "standard error": round(100 * error, 2)}
        table.append(row)
    print(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
