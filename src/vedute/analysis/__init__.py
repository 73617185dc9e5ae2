"""Questions about one's own data: inspect, compare, tune, predict views from views."""
