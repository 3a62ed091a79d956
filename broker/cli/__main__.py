"""`python -m broker.cli` is `xscl`."""

from __future__ import annotations

from broker.cli import main

main(prog_name="xscl")
