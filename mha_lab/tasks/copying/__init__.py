"""Tasks that move symbols without changing them."""
