"""The command ``gnnlab`` and its small subcommands, one module for each."""
