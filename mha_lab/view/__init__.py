"""The page that shows attention maps, and the codec that feeds it."""
