"""Tables that pass between the emulator, the timing model and the compiled SPU."""
