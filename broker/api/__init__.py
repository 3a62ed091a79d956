"""The resources of the HTTP API, one module each; `broker.api.http` puts them together."""
