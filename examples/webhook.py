"""Takes webhooks on loopback and prints the matches: `python examples/webhook.py 8401`.

With the subscription's key (`xscl subscribe` prints it) as a second argument it checks signatures,
as an endpoint that anyone can reach must.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def say(text: str) -> None:
    """Print a line at once, although it may go to a file."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Receiver(BaseHTTPRequestHandler):
    """Prints each match that is posted, and answers 204."""

    key: str | None = None

    def do_POST(self) -> None:
        """Take one delivery: a match, or several under `matches`."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            if self.key is not None:
                Webhook(self.key).verify(body, dict(self.headers.items()))
        except WebhookVerificationError as error:
            self.send_error(401, str(error))
            return
        message = json.loads(body)
        data = message["data"]
        if message.get("type") == "xscl.sample":
            say(f"webhook: {data['query']}: a sample")
            data = {"matches": []}
        for match in data.get("matches", [data]):
            documents = " + ".join(each["key"] for each in match["documents"])
            say(f"webhook: {match['query']}: {documents}")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing of requests: the matches are what is printed."""


if __name__ == "__main__":
    port, *key = sys.argv[1:] or ["8401"]
    Receiver.key = key[0] if key else None
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Receiver)
    say(f"taking webhooks at http://127.0.0.1:{server.server_port}/")
    server.serve_forever()
