"""Writes and reads JSON. Tests run it under a `_json` built from the interpreter's own sources, with and without a
change to `ascii_escape_unicode`, which every string goes through that is written.
"""

import json

import _json

documents = [{"name": f"entry {i}", "text": "some words " * 4, "tags": ["new\n", "blue"]} for i in range(250)]
text = json.dumps(documents)
assert json.loads(text) == documents
print(_json.__file__, len(text))
