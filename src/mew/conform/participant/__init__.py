"""The half of the kit that tries participants: one connects to a gateway of the kit, and is asked, told and watched.

house.py         the gateway, the door and the tokens; the participant as a process of ours
relay.py         the door: everything passes it                     subject.py   the participant as seen from there
frames.py        PURE. its frames        matching.py   PURE. what one looks for in them
company.py       whom the kit plays      worker.py     the one with tools     prompts.py   what makes it do things
acquaintance.py  what it does at all     stage.py      where one check plays  running.py   all of them
scenes.py  proposing.py                  what several checks play              checking.py  where they register
"""
