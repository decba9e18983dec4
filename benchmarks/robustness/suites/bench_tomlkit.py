"""tomlkit: read a document, and write it again."""

import tomlkit

DOCUMENT = """
title = "an example"
[owner]
name = "Tom"
born = 1979-05-27T07:32:00Z
[database]
ports = [8000, 8001, 8002]
temp_targets = { cpu = 79.5, case = 72.0 }
[[products]]
name = "Hammer"
sku = 738594937
"""


def test_parse(benchmark):
    document = benchmark(tomlkit.parse, DOCUMENT)
    assert document["owner"]["name"] == "Tom"


def test_dumps(benchmark):
    assert benchmark(tomlkit.dumps, tomlkit.parse(DOCUMENT)) == DOCUMENT
