"""Private. Serializers of Flink by their classes: what a snapshot says of them, and columns of their values."""
