"""Measures gnnlab on this machine, alone or in turn with its peers on the very same graph.

``python -m benchmarks run --size S --tasks sample,epoch``; see docs/performance.md.
"""
