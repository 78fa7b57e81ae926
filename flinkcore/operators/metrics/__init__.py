"""Metrics of tasks: counters, gauges, histograms and latency. Private."""
