"""What the ingest benchmarks share: bodies to send, clients that send them, servers that take them."""
