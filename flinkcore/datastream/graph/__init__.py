"""The job as a graph of transformations, which the engines plan and run. Private."""
