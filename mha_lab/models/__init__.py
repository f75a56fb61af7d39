"""Encoder, decoder, encoder-decoder and recurrent models, and the blocks they are built from."""
