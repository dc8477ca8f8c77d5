"""Compilation of C++ files to shared libraries, and their cache."""
