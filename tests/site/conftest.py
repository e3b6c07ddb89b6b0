"""What pytest does not collect here."""

collect_ignore = ["browse_site.py"]  # a script with arguments: a test runs it
