"""Operations: what an operator sees and does, from logs and metrics to backups and the doctor.

Invariant: what is written here never holds a secret.

Begin with `log` and `metrics`; `checkup` is `xscl doctor`.
"""
