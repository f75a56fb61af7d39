"""The LightningModule and the LightningDataModule."""
