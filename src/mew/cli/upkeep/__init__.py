"""`mew up` and what belongs to it.

- `up`       start everything a space.yaml names;  `table`  how it is shown
- `asking`   `status`, `restart`, `down`: what a running `mew up` is asked;  `logs`  what its programs wrote
"""
