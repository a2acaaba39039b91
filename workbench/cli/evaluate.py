"""The command ``workbench evaluate``: whole games played with checkpoints."""

import argparse
from typing import Any


def add_parsers(commands: Any) -> None:
    """Register the family's commands."""
    evaluate = commands.add_parser("evaluate", help="play whole games with checkpoints; print the scores as JSON")
    evaluate.add_argument("checkpoints", nargs="+", metavar="CHECKPOINT", help="of a trial: a directory; a line each")
    evaluate.add_argument("--game", metavar="NAME", help="what to play (default: what it was trained on)")
    evaluate.add_argument(
        "--protocol",
        choices=("ga3c", "ba3c"),
        default="ga3c",
        help="ga3c (default): 30 games, actions drawn from the policy; ba3c: 50 games, the likeliest action every time",
    )
    evaluate.add_argument("--seed", type=int, default=0, metavar="N", help="of the games' starts and the actions drawn")
    evaluate.set_defaults(command=_evaluate)


def _evaluate(arguments: argparse.Namespace) -> int:
    import json

    from workbench.algos.rl.checkpoint import load_agent
    from workbench.algos.rl.evaluate import PROTOCOLS
    from workbench.paper.ga3c.table_3 import TABLE_3, normalised

    agents = [load_agent(checkpoint, arguments.game) for checkpoint in arguments.checkpoints]  # all, before any plays
    for model, game, rules in agents:
        played = PROTOCOLS[arguments.protocol].play(model, game, rules, arguments.seed)
        result = {"game": game.name, "protocol": arguments.protocol, "seed": arguments.seed} | played.summary()
        if game.name in TABLE_3:
            result["human_normalised"] = round(normalised(played.mean, game.name), 3)
        print(json.dumps(result), flush=True)
    return 0
