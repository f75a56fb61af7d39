"""What ``bench NAME`` measures, one file each."""
