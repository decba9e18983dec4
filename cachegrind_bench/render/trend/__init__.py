"""The trend report as a page, as Markdown for a job's summary, and as JSON for scripts and for the next report."""
