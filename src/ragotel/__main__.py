"""`python -m ragotel` is the `ragotel` program."""

from ragotel.cli import main

if __name__ == "__main__":
    main()
