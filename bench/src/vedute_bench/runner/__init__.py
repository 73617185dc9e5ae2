"""Planning, running and recording of studies."""
