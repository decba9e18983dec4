"""jinja2: compile a template, and render one."""

import jinja2

TEMPLATE = """<ul>{% for item in items if item.shown %}
<li class="{{ loop.cycle('odd', 'even') }}">{{ loop.index }}: {{ item.name|title|e }} {{ "%.2f"|format(item.price) }}</li>
{%- else %}<li>nothing</li>{% endfor %}</ul>{% macro row(x, y=2) %}{{ x + y }}{% endmacro %}{{ row(1) }}"""
ITEMS = [{"name": f"item <{number}>", "price": number * 1.5, "shown": number % 3} for number in range(60)]


def test_compile(benchmark):
    environment = jinja2.Environment(autoescape=True)
    assert "loop" in benchmark(environment.compile, TEMPLATE, raw=True)


def test_render(benchmark):
    template = jinja2.Environment(autoescape=True).from_string(TEMPLATE)
    assert "Item &lt;1&gt;" in benchmark(template.render, items=ITEMS)
