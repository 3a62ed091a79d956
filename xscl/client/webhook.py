"""Check webhooks: Standard Webhooks 1.0 signatures."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from xscl.client.errors import WebhookError

__all__ = ["verify_webhook"]


def verify_webhook(
    secrets: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_s: float = 300.0,
    now_s: float | None = None,
) -> Any:
    """Return the payload of a message that was signed with one of the secrets.

    `body` are the bytes as they arrived.  Raises `WebhookError` for any other message, and for
    one whose time is further than `tolerance_s` from now: an old message that someone sends
    again.  Keep `webhook-id` to know a repeated delivery.

    >>> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    >>> headers = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    ...            "webhook-timestamp": "1614265330",
    ...            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
    >>> verify_webhook(secret, headers, b'{"test": 2432232314}', now_s=1614265331)
    {'test': 2432232314}
    """
    sent = {name.lower(): value for name, value in headers.items()}
    try:
        identifier, timestamp = sent["webhook-id"], int(sent["webhook-timestamp"])
        signatures = sent["webhook-signature"].split()
    except (KeyError, ValueError) as error:
        raise WebhookError(f"no usable webhook headers: {error}") from error
    if abs((time.time() if now_s is None else now_s) - timestamp) > tolerance_s:
        raise WebhookError("the message is too old, or from the future")
    signed = f"{identifier}.{timestamp}.".encode() + body
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        expected = hmac.digest(_key(secret), signed, hashlib.sha256)
        if any(hmac.compare_digest(expected, each) for each in map(_decoded, signatures)):
            return json.loads(body)
    raise WebhookError("no signature fits")


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_") + "==")


def _decoded(signature: str) -> bytes:
    version, _, value = signature.partition(",")
    if version != "v1":
        return b""
    try:
        return base64.b64decode(value)
    except binascii.Error:
        return b""
