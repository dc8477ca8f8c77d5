"""Instructions, and the tables that pass between the emulator, the timing model and the compiled SPU."""
