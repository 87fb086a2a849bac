"""Proof of the record: verify the hash chain, sign checkpoints, export entries and check an export."""
