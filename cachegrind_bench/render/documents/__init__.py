"""All reports as JSON for scripts: whole numbers, relative changes in parts per million, no text cut short.

Each is a struct, which also makes its schema and its table in docs/json.md. (The result file is `model.codec`.)
"""
