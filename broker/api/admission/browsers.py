"""What a browser may ask for with a session, where programs have a token."""

from __future__ import annotations

__all__ = ["FORMS", "FORM_HEADER", "FORM_TOKEN", "PAGES"]

PAGES = frozenset(
    {
        "GET /",
        "GET /audit",
        "GET /dead-letters",
        "GET /documents",
        "GET /documents/{docid}",
        "GET /feeds",
        "GET /feeds.opml",
        "GET /lateness",
        "GET /live",
        "GET /matches/{seq}",
        "GET /plan",
        "GET /queries/{id}",
        "GET /queries/{id}/edit",
        "GET /register",
        "GET /subscriptions/{id}",
        "GET /tables",
        "GET /tables/{name}",
        "GET /why-not",
    }
)
"""What people see in a browser, where a session does instead of a token.  They change nothing."""

FORMS = {
    "POST /register": "PUT /v1/queries/{id}",
    "POST /queries/{id}": "PUT /v1/queries/{id}",
    "POST /queries/{id}/pause": "POST /v1/queries/{id}/pause",
    "POST /queries/{id}/resume": "POST /v1/queries/{id}/resume",
    "POST /queries/{id}/remove": "DELETE /v1/queries/{id}",
    "POST /subscribe": "POST /v1/subscriptions",
    "POST /subscriptions/{id}/pause": "POST /v1/subscriptions/{id}/pause",
    "POST /subscriptions/{id}/resume": "POST /v1/subscriptions/{id}/resume",
    "POST /subscriptions/{id}/remove": "DELETE /v1/subscriptions/{id}",
    "POST /subscriptions/{id}/test": "POST /v1/subscriptions/{id}/test",
    "POST /subscriptions/{id}/retry": "POST /v1/subscriptions/{id}/retry",
    "POST /deliveries/{id}/retry": "POST /v1/deliveries/{id}/retry",
    "POST /dead-letters/{docid}/retry": "POST /v1/dead-letters/{docid}/retry",
    "POST /feeds": "POST /v1/feeds",
    "POST /feeds.opml": "POST /v1/feeds.opml",
    "POST /feeds/{url}/pause": "POST /v1/feeds/{url}/pause",
    "POST /feeds/{url}/resume": "POST /v1/feeds/{url}/resume",
    "POST /feeds/{url}/refresh": "POST /v1/feeds/{url}/refresh",
    "POST /feeds/{url}/remove": "DELETE /v1/feeds/{url}",
}
"""What the forms of pages are sent to, and the operation of the API that each asks for.

Who may use that, may send the form; it is done and noted as that operation.
"""

FORM_TOKEN = "xscl_form"
"""The field of a form with the token of its page."""

FORM_HEADER = "X-Xscl-Form"
"""The header in which a script of a page sends that token."""
