"""Standard Webhooks 1.0 signatures: HMAC-SHA256 over id, time and body."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable

from broker.registry.subscription import Secret

__all__ = ["headers", "sign"]


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """Return one signature, `v1,` and base64.

    >>> sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek",
    ...      1614265330, b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = base64.b64decode(secret.removeprefix("whsec_") + "==")
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def headers(
    secrets: Iterable[Secret], message_id: str, timestamp_s: int, body: bytes
) -> dict[str, str]:
    """Return the headers that let a receiver check a message with any of the secrets in force."""
    signatures = [sign(secret.value, message_id, timestamp_s, body) for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(signatures),
    }
