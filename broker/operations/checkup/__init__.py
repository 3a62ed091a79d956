"""What `xscl doctor` looks at: this machine, and what the broker reaches from it."""
