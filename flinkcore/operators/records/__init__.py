"""Records, watermarks and outputs, and how values are copied and shown. Private."""
