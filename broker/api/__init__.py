"""The resources of the HTTP API, one module each; `broker.http` puts them together."""
