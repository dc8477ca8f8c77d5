"""Linux kernel of one emulated program. Each class implements the system calls of one group.

Each method in `calls` has the name and the parameters of its system call. It returns the result of the call, which is a
negative errno after an error. It can also raise OSError for an error that Linux returns as well, or NotEmulatedError
for an error that Linux would not return.
"""
