"""Write, read and serve attention maps in TensorBoard."""
