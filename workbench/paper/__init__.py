"""The papers: what each one's experiments are, their numbers beside ours, and the scoreboard."""
