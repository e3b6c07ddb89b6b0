"""Start, watch and end the processes of a job, on one machine or on many.

:mod:`gnnlab.launch.launch` is the command ``gnnlab launch``, :mod:`gnnlab.launch.doctor` checks the
machines before, and :mod:`gnnlab.launch.copy_files` gives each its files.
"""
