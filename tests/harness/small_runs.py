"""Overrides that make a run small enough for a test."""

TINY = (
    "model.embed_dim=16",
    "model.num_heads=2",
    "data.batch_size=7",
    "data.validation_size=23",
    "data.test_size=29",
    "trainer.val_check_interval=5",
    "trainer.log_every_n_steps=1",
    "trainer.enable_progress_bar=false",
)
