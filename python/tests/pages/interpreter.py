"""Runs the Python of a page, block after block in one namespace as a reader would, and says what came of each block.

Reads from standard input, as JSON: `page`, `blocks` (line and text of each), `libraries` that may be missing, and `before`,
which makes what the page leaves to the reader. Writes a list to the file that its argument names: for each block `failed`, a
traceback or nothing, and `without`, the libraries that statements of it asked for in vain.
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
            # What it prints is of no interest unless it fails.
            with contextlib.redirect_stdout(sys.stderr):
                code = compile(ast.Module([statement], []), asked["page"], "exec")
                exec(code, namespace)  # noqa: S102 (that is what this program is for)
        except ModuleNotFoundError as error:
            library = (error.name or "").partition(".")[0]
            if library not in asked["libraries"]:
                return {"failed": traceback.format_exc(), "without": without}
            without.append(library)
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                # The rest is about what was to be imported.
                break
        except Exception:  # noqa: BLE001 (told to whoever asked)
            return {"failed": traceback.format_exc(), "without": without}
    return {"failed": None, "without": without}


main()
