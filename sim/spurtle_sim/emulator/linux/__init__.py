"""The Linux kernel as one emulated program sees it: each class has the system calls of one purpose.

Each method in `calls` has the name and the parameters of its system call. It returns the result, negative for an errno.
It may also raise OSError for an error that Linux returns as well, or NotEmulatedError for one that it would not return.
"""
