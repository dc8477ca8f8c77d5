"""Report on the samples of a profile: columns, symbols, statistics, and their outputs."""
