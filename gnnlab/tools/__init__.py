"""Command-line tools for jobs on several machines; ``gnnlab --help`` lists them.

References
----------
DGL user guide, chapter 7, "Distributed Training".
"""
