"""Where results are kept: single files, and saved baselines."""
