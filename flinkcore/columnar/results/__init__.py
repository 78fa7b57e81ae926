"""What a replay gives: rows, files, progress and a report."""
