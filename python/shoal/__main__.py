"""`python -m shoal`: the command `shoal` of this interpreter."""

from ._command import main

if __name__ == "__main__":
    main()
