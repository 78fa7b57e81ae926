"""Plans: the graph of a job as a log plan for each log and a stage plan for each operator. Private."""
