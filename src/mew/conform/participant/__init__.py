"""The half of the kit that tests participants: one connects to a gateway of the kit, and is asked, told and watched.

test_gateway.py  the gateway, the relay before it, the tokens; the participant as a child process
subject.py       the participant under test: every frame it sent and received
test_run.py      the participant, the roles that the kit plays, and what is known so far
worker.py        a role with tools            prompts.py  what makes the participant do things
probe.py         finds out what it does at all
context.py       what a check works with      steps.py    what several checks do      runner.py  runs them all
"""
