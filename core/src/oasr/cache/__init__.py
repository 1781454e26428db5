"""Where decoding keeps what it has read: blocks that grow, and slots of fixed size."""
