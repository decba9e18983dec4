"""Use cases that execute programs: measuring one command, hunting its noise, examining the machine."""
