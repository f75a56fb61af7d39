"""Decoding with grouped queries, as transformers does it, against its eager attention."""

import pytest
import torch

from mha_lab import record_attention

transformers = pytest.importorskip("transformers")


def llama(implementation: str) -> torch.nn.Module:
    config = transformers.LlamaConfig(
        vocab_size=23, hidden_size=24, intermediate_size=19, num_hidden_layers=1,
        num_attention_heads=6, num_key_value_heads=2, attn_implementation=implementation,
        pad_token_id=0, eos_token_id=None,
    )  # fmt: skip
    torch.manual_seed(5)
    return transformers.LlamaForCausalLM(config).eval()


@pytest.mark.parametrize("is_padded", [True, False])
def test_each_step_is_a_map_of_all_heads_and_one_query(is_padded):
    ids = torch.randint(1, 23, (3, 5), generator=torch.Generator().manual_seed(3))
    mask = torch.ones_like(ids)
    if is_padded:
        mask[0, :2] = mask[2, :3] = 0
    options = {"attention_mask": mask, "max_new_tokens": 4, "do_sample": False}
    with record_attention(model := llama("sdpa")) as maps:
        model.generate(ids, **options)
    expected = llama("eager").generate(
        ids, **options, output_attentions=True, return_dict_in_generate=True
    )
    assert len(maps) == 4
    for step, (one, (right,)) in enumerate(zip(maps, expected.attentions, strict=True)):
        length = 5 if step == 0 else 1
        assert one.weights.shape == (3, 6, length, 5 + step)
        seen = mask[:, -length:].bool() if step == 0 else slice(None)
        ours, right = one.weights.transpose(1, 2), right.transpose(1, 2)
        torch.testing.assert_close(ours[seen], right[seen], rtol=0, atol=1e-6)
