"""What the mechanisms share that carry a state along the sequence instead of an L×S matrix.

Their queries all read the same state, so a mask may say which keys count and that nobody sees later
ones, and no more (``masks.py``). Long sequences are cut into chunks: within a chunk the matrix is
written out, between chunks a state of D×D numbers is handed on (``chunks.py``).
"""
