"""Sources: operators of readers and of source functions, their watermarks and alignment. Private."""
