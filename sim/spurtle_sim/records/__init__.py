"""Records: decoder, text and JSON representations, encoder and checks."""
