"""The command line: one file a family of commands, thin over the rest.

Parses, calls, prints. Nothing heavy is imported before the command that needs it.
"""
