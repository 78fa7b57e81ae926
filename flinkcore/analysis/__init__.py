"""What a log and its replays tell beyond their results: analyses, written once for this process and for Spark."""
