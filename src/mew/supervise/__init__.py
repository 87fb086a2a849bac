"""`mew up`: starts, watches and stops what a space.yaml names.

- `launch`      what is to be started, from the file;  `program`  as data
- `process`     one process group;  `keeper`  one program, started again when it ends;  `warden`  ends what is left
- `supervisor`  all of them, in order;  `control`  how other commands ask it;  `logs`  the files they write
"""
