"""The steps of a job of GitHub Actions: what `cg-bench ci` does, and the action strings together."""
