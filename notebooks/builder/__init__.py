"""What `notebooks/build.py` is made of: sources, notebooks, checks."""
