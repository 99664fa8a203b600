"""The composition root: the only rooms that know all others. Wires them, and decides nothing else."""
