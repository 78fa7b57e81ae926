"""What a replay gives, and what it tells of itself."""
