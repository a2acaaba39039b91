"""The command line: one file a family of commands, thin over the rest."""
