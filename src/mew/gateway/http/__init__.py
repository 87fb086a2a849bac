"""The HTTP API (§5.3): routes, schemas, handlers, problem details, metrics and the OpenAPI document."""
