"""Sessions that suit replays, and the Java that they run on."""
