"""`python -m mew` is the command `mew`."""

from mew.cli.main import main

if __name__ == "__main__":
    main()
