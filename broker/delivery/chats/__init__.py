"""Messages for people, over the APIs of chat services.

`notice` says what a message has to, in lines of text and links; one module for each service renders
it as (headers, body) in that service's own form and within its bounds; `channel` sends it over the
webhook's connections and reads the answer.

Invariants: what a publisher wrote is text and never markup, and nobody is called by it; a message
is never refused for its length; whatever is left out is counted.  A repeated attempt has the same
body.

Begin with `notice`.
"""
