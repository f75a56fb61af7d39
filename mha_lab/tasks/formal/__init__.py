"""Formal languages and arithmetic, after Delétang et al. 2023 and Ruoss et al. 2023."""
