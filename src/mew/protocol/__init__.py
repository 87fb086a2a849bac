"""PURE. The wire: envelopes, kinds, capabilities, stream frames, errors. No clock, no fresh ids, no I/O."""
