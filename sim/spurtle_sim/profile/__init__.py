"""`spurtle profile`: a program through the compiled SPU."""
