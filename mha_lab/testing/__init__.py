"""Contract checks that every variant, encoding, model and task must pass; public.

Each check is a function that takes what it checks and raises AssertionError with a sentence. Run
all at once, in any program::

    from mha_lab.testing import check_attention

    check_attention(MyAttention)

or each as a test of its own under pytest::

    @pytest.mark.parametrize("check", attention_checks())
    def test_my_attention(check):
        check(MyAttention)
"""

from mha_lab.testing.attention import attention_checks, check_attention
from mha_lab.testing.model import check_model, model_checks
from mha_lab.testing.position import check_position, position_checks
from mha_lab.testing.task import check_task, task_checks

__all__ = [
    "attention_checks",
    "check_attention",
    "check_model",
    "check_position",
    "check_task",
    "model_checks",
    "position_checks",
    "task_checks",
]
