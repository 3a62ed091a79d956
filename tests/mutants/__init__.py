"""Oracles that err: some case must tell each of them from the right one."""
