"""The Python process: lazy names, extras, warnings, waiting, and names of PyFlink that are missing. Private."""
