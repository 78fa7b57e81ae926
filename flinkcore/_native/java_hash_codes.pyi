"""Java hash codes at C level; see `key_groups.hash_codes` for Python."""
