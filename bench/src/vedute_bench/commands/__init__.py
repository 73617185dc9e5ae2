"""Commands added to `vedute`: `bench`, `bench-demo` and `bench-tables`; one file per command."""
