"""Mechanisms that look back only: where they have a meaning, said before and during a call."""


def refuse_all_but_causal(mechanism: str, *, is_causal: bool, is_cross: bool) -> None:
    """Refuse to be built where a call would not be causal self-attention.

    Args:
        mechanism: What refuses, for the sentence.
        is_causal: Whether no query of the calls to come sees a later key.
        is_cross: Whether queries and keys are of two sequences.

    Raises:
        ValueError: It would not.
    """
    if is_cross:
        raise ValueError(
            f"{mechanism} reads keys in the order of its own sequence, which means nothing between "
            "two sequences; choose model=decoder, which has no cross-attention, or an attention "
            "that has one, such as custom or linear"
        )
    if not is_causal:
        raise ValueError(
            f"{mechanism} looks back only, but in an encoder each query sees later keys too; "
            "choose model=decoder, or an attention that looks both ways, such as custom or linear"
        )


def require_causal(mechanism: str, *, is_causal: bool, L: int, S: int) -> None:
    """Refuse a call that is not causal self-attention.

    Args:
        mechanism: What refuses, for the sentence.
        is_causal: Whether query i sees keys 0..i only.
        L: How many queries.
        S: How many keys.

    Raises:
        ValueError: It is not; one query and one key are causal whatever is said.
    """
    if L != S:
        raise ValueError(
            f"{mechanism} needs one key for each query, of the same sequence, got {L} queries and "
            f"{S} keys; choose an attention that crosses sequences, such as custom or linear"
        )
    if not is_causal and L > 1:
        raise ValueError(
            f"{mechanism} looks back only: pass is_causal=True or the causal attn_mask, or choose "
            "an attention that looks both ways, such as custom or linear"
        )
