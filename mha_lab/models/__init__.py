"""Encoder, decoder, encoder-decoder and recurrent models, and the blocks they are built from.

All models answer to one interface, ``mha_lab.models.interface.SequenceModel``.
"""
