"""`mew up`: starts, watches and stops what a space.yaml names.

- `preparing`   finds port and tokens;  `launch`, `participant`  what is to be started;  `program`  as data
- `process`     one process group;  `keeper`  one program, started again when it ends
- `supervisor`  all of them, in order;  `watch`  who has joined;  `logs`  the files they write;  `env_file`  `.mew/env`
- `guarding`    that nothing is left behind: `warden`, a process that outlives the supervisor, and `orphans`;
                `leftovers`  when both were killed
- `claim`       one supervisor for a folder;  `control`  how other commands ask it
"""
