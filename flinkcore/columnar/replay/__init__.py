"""Parts of a replay that its drivers, in this process and on Spark, have in common. Private."""
