"""`mew up`: start, supervise and stop what a space.yaml names.

- `prepare`     finds port and tokens;  `launch`, `participant`  what to start;  `program`  as data
- `process`     one process group;  `process_supervisor`  one program: restart policy, back-off, stop
- `supervisor`  all of them, in order;  `presence`  who has joined;  `logs`  their files;  `env_file`  `.mew/env`
- `cleanup`     that nothing is left behind: `reaper`, a process that outlives the supervisor, `orphans`, leftovers
- `claim`       one supervisor for a folder;  `control`  how other commands ask it
"""
