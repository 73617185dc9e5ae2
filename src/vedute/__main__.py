"""`python -m vedute` is the `vedute` command."""

from vedute.cli import main

if __name__ == "__main__":
    main()
