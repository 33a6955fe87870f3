"""Runs the Python blocks of a page in one namespace, as a reader would, and tells the outcome of each.

Reads from standard input, as JSON: `page`, `blocks` (line and text of each), `libraries` that may be missing, and
`before`, code that defines what the page leaves to the reader. Writes a list to the file that its argument names. It
has for each block `failed`, a traceback or `None`, and `without`, the missing libraries that its statements asked for.
"""

import ast
import contextlib
import json
import sys
import traceback


def main():
    asked = json.load(sys.stdin)
    namespace = {"__name__": "__main__"}
    exec(asked["before"], namespace)  # noqa: S102 (that is what this program is for)
    outcomes = [outcome(asked, line, text, namespace) for line, text in asked["blocks"]]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(outcomes, file)


def outcome(asked, line, text, namespace):
    tree = ast.parse(text)
    # So that a traceback names the lines of the page.
    ast.increment_lineno(tree, line)
    without = []
    for statement in tree.body:
        try:
            # The output of a statement is of interest only if the statement fails.
            with contextlib.redirect_stdout(sys.stderr):
                code = compile(ast.Module([statement], []), asked["page"], "exec")
                exec(code, namespace)  # noqa: S102 (that is what this program is for)
        except ModuleNotFoundError as error:
            library = (error.name or "").partition(".")[0]
            if library not in asked["libraries"]:
                return {"failed": traceback.format_exc(), "without": without}
            without.append(library)
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                # The rest of the block needs what was to be imported.
                break
        except Exception:  # noqa: BLE001 (it is part of the outcome)
            return {"failed": traceback.format_exc(), "without": without}
    return {"failed": None, "without": without}


main()
