"""The demonstration: a small world of feeds around a real broker, on loopback."""
