"""Edits that change no work, made by rules in real packages: does any comparison raise an alarm, and is a planted 1 % found?

python -m benchmarks.robustness [--package NAME==VERSION --bench FILE] [--table] [--help]
"""
