collect_ignore = ["programs"]  # they import dgl: a test runs them as a user would
