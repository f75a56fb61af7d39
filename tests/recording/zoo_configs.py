"""The models of the zoo: small configs, and what each is called with.

The length of a text is 11 with padding, or 13 for what a decoder attends to; images are 32 pixels
wide in patches of 8; audio is a fraction of a second.
"""

from __future__ import annotations

from typing import Any

import torch

N, L, S = 2, 11, 13
VOCAB, E, H = 41, 32, 4

TEXT = {
    "vocab_size": VOCAB,
    "hidden_size": E,
    "intermediate_size": 37,
    "num_hidden_layers": 2,
    "num_attention_heads": H,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
GROUPED = {**TEXT, "num_key_value_heads": 2, "head_dim": 8}
EXPERTS = {
    **GROUPED,
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "intermediate_size": 40,
    "moe_intermediate_size": 16,
}
SLIDING = {**GROUPED, "sliding_window": 4}
GPT = {"vocab_size": VOCAB, "n_embd": E, "n_layer": 2, "n_head": H, "n_positions": 64}
SEQ2SEQ = {
    "vocab_size": VOCAB,
    "d_model": E,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": H,
    "decoder_attention_heads": H,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
}
T5 = {
    "vocab_size": VOCAB,
    "d_model": E,
    "d_kv": 8,
    "d_ff": 37,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": H,
}
IMAGE = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": E,
    "num_hidden_layers": 2,
    "num_attention_heads": H,
    "intermediate_size": 37,
}
WINDOWS = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": [2, 1],
    "num_heads": [2, 4],
    "window_size": 4,
}
WAVE = {
    "hidden_size": E,
    "num_hidden_layers": 2,
    "num_attention_heads": H,
    "intermediate_size": 37,
    "conv_dim": [16, 16],
    "conv_kernel": [10, 3],
    "conv_stride": [5, 2],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "vocab_size": VOCAB,
}

TRANSFORMERS: dict[str, tuple[dict[str, Any], str]] = {
    # encoders of text
    "bert": (TEXT, "text"),
    "roberta": (TEXT, "text"),
    "xlm-roberta": (TEXT, "text"),
    "electra": ({**TEXT, "embedding_size": 16}, "text"),
    "albert": ({**TEXT, "embedding_size": 16}, "text"),
    "camembert": (TEXT, "text"),
    "distilbert": (
        {"vocab_size": VOCAB, "dim": E, "n_layers": 2, "n_heads": H, "hidden_dim": 37},
        "text",
    ),
    "deberta": ({**TEXT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, "text"),
    "deberta-v2": ({**TEXT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, "text"),
    "mpnet": (TEXT, "text"),
    "ernie": (TEXT, "text"),
    "squeezebert": ({**TEXT, "embedding_size": E, "intermediate_size": 36}, "text"),
    "mobilebert": (
        {**TEXT, "embedding_size": 16, "intra_bottleneck_size": E, "true_hidden_size": E},
        "text",
    ),
    "convbert": ({**TEXT, "embedding_size": E, "conv_kernel_size": 3, "head_ratio": 2}, "text"),
    "megatron-bert": (TEXT, "text"),
    "rembert": ({**TEXT, "input_embedding_size": E, "output_embedding_size": E}, "text"),
    "roformer": ({**TEXT, "embedding_size": E}, "text"),
    "esm": ({**TEXT, "mask_token_id": 5, "position_embedding_type": "rotary"}, "text"),
    "longformer": ({**TEXT, "attention_window": 4}, "text"),
    "big_bird": ({**TEXT, "attention_type": "original_full"}, "text"),
    "nystromformer": ({**TEXT, "num_landmarks": 4, "segment_means_seq_len": 32}, "long text"),
    "funnel": (
        {
            "vocab_size": VOCAB,
            "block_sizes": [1, 1],
            "d_model": E,
            "n_head": H,
            "d_head": 8,
            "d_inner": 37,
            "num_decoder_layers": 1,
            "architectures": ["FunnelModel"],
        },
        "text",
    ),
    "xlm": ({"vocab_size": VOCAB, "emb_dim": E, "n_layers": 2, "n_heads": H}, "text"),
    "xlnet": (
        {"vocab_size": VOCAB, "d_model": E, "n_layer": 2, "n_head": H, "d_inner": 37},
        "text",
    ),
    "modernbert": ({**TEXT, "global_attn_every_n_layers": 2, "local_attention": 6}, "text"),
    "layoutlm": (TEXT, "text"),
    "canine": ({**TEXT, "local_transformer_stride": 8, "downsampling_rate": 2}, "long text"),
    # decoders of text
    "gpt2": (GPT, "text"),
    "openai-gpt": (GPT, "text"),
    "gptj": ({**GPT, "rotary_dim": 4}, "text"),
    "codegen": ({**GPT, "rotary_dim": 4}, "text"),
    "gpt_bigcode": (GPT, "text"),
    "gpt_neo": (
        {
            **TEXT,
            "num_layers": 2,
            "num_heads": H,
            "window_size": 4,
            "attention_types": [[["global", "local"], 1]],
        },
        "text",
    ),
    "gpt_neox": (TEXT, "text"),
    "opt": ({**TEXT, "ffn_dim": 37, "word_embed_proj_dim": E}, "text"),
    "biogpt": (TEXT, "text"),
    "bloom": ({"vocab_size": VOCAB, "hidden_size": E, "n_layer": 2, "n_head": H}, "text"),
    "mpt": (
        {"vocab_size": VOCAB, "d_model": E, "n_layers": 2, "n_heads": H, "max_seq_len": 64},
        "text",
    ),
    "falcon": ({**TEXT, "alibi": True, "multi_query": True}, "text"),
    "ctrl": (
        {"vocab_size": VOCAB, "n_embd": E, "n_layer": 2, "n_head": H, "dff": 37, "n_positions": 64},
        "text",
    ),
    "xglm": (
        {**TEXT, "d_model": E, "num_layers": 2, "attention_heads": H, "ffn_dim": 37},
        "text",
    ),
    "llama": (GROUPED, "text"),
    "mistral": (SLIDING, "text"),
    "mixtral": ({**SLIDING, **EXPERTS}, "text"),
    "qwen2": ({**SLIDING, "use_sliding_window": True, "max_window_layers": 1}, "text"),
    "qwen3": (GROUPED, "text"),
    "qwen3_moe": (EXPERTS, "text"),
    "phi": (TEXT, "text"),
    "phi3": (SLIDING, "text"),
    "gemma": (GROUPED, "text"),
    "gemma2": ({**SLIDING, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 0.5}, "text"),
    "gemma3_text": ({**SLIDING, "query_pre_attn_scalar": 8}, "text"),
    "gpt_oss": ({**SLIDING, **EXPERTS}, "text"),
    "diffllama": (GROUPED, "text"),
    "cohere": (GROUPED, "text"),
    "cohere2": (SLIDING, "text"),
    "starcoder2": (SLIDING, "text"),
    "stablelm": ({**TEXT, "num_key_value_heads": H, "partial_rotary_factor": 0.5}, "text"),
    "olmo": (GROUPED, "text"),
    "olmo2": (GROUPED, "text"),
    "olmo3": (SLIDING, "text"),
    "granite": (GROUPED, "text"),
    "nemotron": (GROUPED, "text"),
    "persimmon": (TEXT, "text"),
    "smollm3": (GROUPED, "text"),
    "helium": (GROUPED, "text"),
    "glm": (GROUPED, "text"),
    "deepseek_v2": (
        {
            **EXPERTS,
            "num_key_value_heads": H,
            "kv_lora_rank": 8,
            "q_lora_rank": 8,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
            "n_routed_experts": 4,
            "n_group": 2,
            "topk_group": 1,
            "first_k_dense_replace": 1,
        },
        "text",
    ),
    "doge": ({**GROUPED, "keep_window_size": 4}, "text"),
    # encoder-decoders of text
    "bart": (SEQ2SEQ, "seq2seq"),
    "mbart": (SEQ2SEQ, "seq2seq"),
    "pegasus": (SEQ2SEQ, "seq2seq"),
    "marian": (SEQ2SEQ, "seq2seq"),
    "blenderbot": (SEQ2SEQ, "seq2seq"),
    "m2m_100": (SEQ2SEQ, "seq2seq"),
    "plbart": (SEQ2SEQ, "seq2seq"),
    "led": ({**SEQ2SEQ, "attention_window": 4}, "seq2seq"),
    "t5": (T5, "seq2seq"),
    "mt5": (T5, "seq2seq"),
    "umt5": (T5, "seq2seq"),
    "longt5": (T5, "seq2seq"),
    "switch_transformers": ({**T5, "num_experts": 2}, "seq2seq"),
    "prophetnet": (
        {
            "vocab_size": VOCAB,
            "hidden_size": E,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "num_encoder_attention_heads": H,
            "num_decoder_attention_heads": H,
            "encoder_ffn_dim": 37,
            "decoder_ffn_dim": 37,
            "max_position_embeddings": 64,
        },
        "seq2seq",
    ),
    # vision
    "vit": (IMAGE, "image"),
    "deit": (IMAGE, "image"),
    "beit": ({**IMAGE, "use_relative_position_bias": True}, "image"),
    "dinov2": (IMAGE, "image"),
    "dinov2_with_registers": (IMAGE, "image"),
    "dinov3_vit": (IMAGE, "image"),
    "ijepa": (IMAGE, "image"),
    "vit_msn": (IMAGE, "image"),
    "yolos": ({**IMAGE, "image_size": [32, 32]}, "image"),
    "siglip_vision_model": (IMAGE, "image"),
    "clip_vision_model": (IMAGE, "image"),
    "swin": (WINDOWS, "image"),
    "swinv2": (WINDOWS, "image"),
    "donut-swin": (WINDOWS, "image"),
    "segformer": (
        {
            "depths": [1, 1],
            "num_encoder_blocks": 2,
            "sr_ratios": [2, 1],
            "hidden_sizes": [8, 16],
            "num_attention_heads": [1, 2],
            "patch_sizes": [3, 3],
            "strides": [4, 2],
            "mlp_ratios": [2, 2],
            "decoder_hidden_size": 16,
        },
        "image",
    ),
    "pvt": (
        {
            "image_size": 32,
            "depths": [1, 1, 1, 1],
            "hidden_sizes": [8, 8, 16, 16],
            "num_attention_heads": [1, 1, 2, 2],
            "sequence_reduction_ratios": [2, 2, 1, 1],
        },
        "image",
    ),
    "imagegpt": ({**GPT, "vocab_size": VOCAB}, "text"),
    "clip": (
        {"text_config": {**TEXT, "eos_token_id": 2}, "vision_config": IMAGE, "projection_dim": 16},
        "text and image",
    ),
    "siglip": ({"text_config": TEXT, "vision_config": IMAGE}, "text and image"),
    "vilt": ({**TEXT, **IMAGE}, "text and image"),
    # audio
    "wav2vec2": (WAVE, "wave"),
    "hubert": (WAVE, "wave"),
    "wavlm": (WAVE, "wave"),
    "unispeech": (WAVE, "wave"),
    "data2vec-audio": (WAVE, "wave"),
    "whisper": (
        {
            **SEQ2SEQ,
            "num_mel_bins": 8,
            "max_source_positions": 16,
            "max_target_positions": 64,
            "pad_token_id": 0,
        },
        "whisper",
    ),
    "speech_to_text": (
        {
            **SEQ2SEQ,
            "input_feat_per_channel": 8,
            "num_mel_bins": 8,
            "conv_channels": 16,
            "max_source_positions": 64,
            "max_target_positions": 64,
        },
        "speech",
    ),
    "audio-spectrogram-transformer": (
        {**IMAGE, "max_length": 32, "num_mel_bins": 16, "frequency_stride": 8, "time_stride": 8},
        "spectrogram",
    ),
}

PLAIN = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 4}
STAGES = {"embed_dims": (8, 8, 16, 16), "depths": (1, 1, 1, 1), "num_heads": (1, 1, 2, 2)}

TIMM: dict[str, dict[str, Any]] = {
    "vision_transformer.VisionTransformer": PLAIN,
    "deit.VisionTransformerDistilled": PLAIN,
    "beit.Beit": {**PLAIN, "use_rel_pos_bias": True},
    "eva.Eva": {**PLAIN, "use_rot_pos_emb": True},
    "vision_transformer_relpos.VisionTransformerRelPos": PLAIN,
    "vision_transformer_hybrid.VisionTransformer": {**PLAIN, "global_pool": "map"},
    "naflexvit.NaFlexVit": {},
    "cait.Cait": PLAIN,
    "xcit.Xcit": PLAIN,
    "convit.ConVit": {**PLAIN, "local_up_to_layer": 1},
    "tnt.TNT": {
        "img_size": 32,
        "embed_dim": 32,
        "inner_dim": 8,
        "depth": 2,
        "num_heads_inner": 2,
        "num_heads_outer": 4,
    },
    "swin_transformer.SwinTransformer": {
        "img_size": 32,
        "patch_size": 2,
        "embed_dim": 16,
        "depths": (2, 1),
        "num_heads": (2, 4),
        "window_size": 4,
    },
    "swin_transformer_v2.SwinTransformerV2": {
        "img_size": 32,
        "patch_size": 2,
        "embed_dim": 16,
        "depths": (2, 1),
        "num_heads": (2, 4),
        "window_size": 4,
    },
    "levit.Levit": {
        "img_size": 64,
        "embed_dim": (16, 24, 32),
        "depth": (1, 1, 1),
        "num_heads": (2, 3, 4),
        "key_dim": 8,
    },
    "pvt_v2.PyramidVisionTransformerV2": {**STAGES, "sr_ratios": (4, 2, 1, 1)},
    "twins.Twins": {**STAGES, "img_size": 64, "wss": None, "sr_ratios": (4, 2, 1, 1)},
    "visformer.Visformer": {
        "img_size": 64,
        "init_channels": 8,
        "embed_dim": 32,
        "depth": (1, 1, 1),
        "num_heads": 4,
        "spatial_conv": "100",
        "attn_stage": "011",
    },
    "hiera.Hiera": {
        "img_size": (64, 64),
        "embed_dim": 16,
        "num_heads": 1,
        "stages": (1, 1, 1, 1),
    },
    "davit.DaVit": {
        "depths": (1, 1, 1, 1),
        "embed_dims": (8, 8, 16, 16),
        "num_heads": (1, 1, 2, 2),
    },
    "edgenext.EdgeNeXt": {},
    "volo.VOLO": {
        "img_size": 64,
        "layers": (1, 1),
        "embed_dims": (16, 32),
        "num_heads": (2, 4),
        "downsamples": (True, False),
        "outlook_attention": (True, False),
    },
}


def inputs_of(kind: str) -> dict[str, Any]:
    """What a model of this kind is called with."""
    torch.manual_seed(1)
    ids, source = torch.randint(3, VOCAB - 1, (N, L)), torch.randint(3, VOCAB - 1, (N, S))
    mask = torch.ones(N, S, dtype=torch.long)
    mask[1, 10:] = 0
    image = torch.randn(N, 3, 32, 32)
    return {
        "text": {"input_ids": ids, "attention_mask": mask[:, :L]},
        "long text": {"input_ids": torch.randint(3, VOCAB, (N, 32))},
        "seq2seq": {
            "input_ids": source,
            "attention_mask": mask,
            "decoder_input_ids": torch.randint(3, VOCAB - 1, (N, 7)),
        },
        "image": {"pixel_values": image},
        "text and image": {"input_ids": ids, "pixel_values": image},
        "wave": {"input_values": torch.randn(N, 400)},
        "whisper": {
            "input_features": torch.randn(N, 8, 32),
            "decoder_input_ids": torch.randint(3, VOCAB - 1, (N, 7)),
        },
        "speech": {
            "input_features": torch.randn(N, 40, 8),
            "decoder_input_ids": torch.randint(3, VOCAB - 1, (N, 7)),
        },
        "spectrogram": {"input_values": torch.randn(N, 32, 16)},
    }[kind]
