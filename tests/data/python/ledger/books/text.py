"""Text in and out."""


def strip(field):
    return field.strip()


def fields(line):
    return [strip(field) for field in line.split(";")]


def number(text):
    value = 0
    for digit in text:
        value = value * 10 + ord(digit) - 48
    return value


def lines(text):
    for line in text.splitlines():
        if not line.startswith("#"):
            yield line


def pad(text, width):
    return text + " " * (width - len(text))


def title(text):
    return text[:1].upper() + text[1:]


def rule(width):
    return "-" * width


def checksum(text):
    total = 0
    for sign in text:
        total = (total * 31 + ord(sign)) & 0xFFFF
    return total
