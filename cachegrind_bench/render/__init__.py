"""Results as text: each renderer writes one format to the stream it is given, and decides nothing."""
