"""Deliveries: who gets which match when, by webhook, by mail, or by fetching it.

Each subscription has a lane behind the outbox (`lanes`).  The worker (`worker`) leases what is
ready, sends it over a channel (`webhook`, `mail`, `chats`, `sinks`, `apprise`) and writes what came
of it (`leases`); `schedule` decides when to try again.  Those who fetch have cursors of their own
(`consumers`, `hub`).

Invariant: what a subscriber is owed follows from the outbox and the registry, so it is sent at
least once, and each delivery has one id in every attempt.

Begin with `lanes`.
"""
