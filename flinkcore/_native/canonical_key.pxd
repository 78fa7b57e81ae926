# The canonical form of a key: equal, as Python compares and hashes it, exactly where the key is the same in Flink.
cpdef object canonical_key(object key)
