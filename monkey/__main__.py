"""`python -m monkey`, which is `monkey`."""

from monkey.cli.main import main

if __name__ == "__main__":
    main()
