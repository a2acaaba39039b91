"""The papers: each one's experiments, its published numbers beside ours, and the scoreboard.

A package a paper; what is specific to one stands there and nowhere below.
"""
