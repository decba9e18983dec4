"""Values only: counts, profiles, scores, results and their file format. Nothing here touches the system."""
