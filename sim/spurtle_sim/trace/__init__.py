"""Instructions, and the tables that the emulator, the timing model and the compiled SPU exchange."""
