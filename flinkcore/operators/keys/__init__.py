"""Keys: their canonical form, their groups, and the current key of an operator. Private."""
