"""What anyone can hand to their own Trainer."""
