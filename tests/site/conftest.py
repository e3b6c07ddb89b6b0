"""What pytest does not collect here."""

collect_ignore = ["browse_site.py", "browse_figures.py"]  # scripts with arguments: tests run them
