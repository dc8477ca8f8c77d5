"""Records: decoded, as text and JSON, and checked."""
