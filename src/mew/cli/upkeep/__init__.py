"""`mew up` and what belongs to it.

- `up`       start everything a space.yaml names;  `detaching`  in the background
- `showing`  what is shown meanwhile;  `table`  the programs as a table;  `link`  to the page, at the first start
- `asking`   `status`, `restart`, `down`: what a running `mew up` is asked;  `logs`  what its programs wrote
"""
