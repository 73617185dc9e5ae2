"""What figures of studies share."""
