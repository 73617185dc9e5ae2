"""Time and memory: clocks, gauges, and what they measured."""
