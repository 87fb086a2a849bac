"""The synchronous face, which is no second implementation: `sync`, over `proxy`, `portal` and `job`."""
