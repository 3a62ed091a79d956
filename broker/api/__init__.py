"""The HTTP API: one module for each resource, and who may use which.

`http` puts the resources together; they reach the broker through `backend`, and those of deliveries
through `pickup`.  Every error is a problem (`problem`).  `openapi.yaml` describes it all.

Invariant: a resource is the admin's unless `access` names it.

Begin with `http` and `access`.
"""
