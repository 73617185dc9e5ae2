"""What `vedute` gains: `bench`, `bench-demo`, `bench-tables`; one file per command."""
