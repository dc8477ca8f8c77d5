"""C++ as shared libraries, and their cache."""
