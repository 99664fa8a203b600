"""Which key of a profile stands behind a server's flag, to name what a person can change."""

FLAGS_BY_KEY = {
    "target": "-m --model -hf -hfr --hf-repo -hff --hf-file",
    "draft": "-md --model-draft --spec-draft-model --spec-draft-hf -hfd -hfrd --hf-repo-draft",
    "context": "-c --ctx-size --kv-unified-per-slot",
    "slots": "-np --parallel",
    "unified_kv": "-kvu --kv-unified --no-kv-unified",
    "batch": "-b --batch-size",
    "ubatch": "-ub --ubatch-size",
    "kv_type_k": "-ctk --cache-type-k",
    "kv_type_v": "-ctv --cache-type-v",
    "flash_attention": "-fa --flash-attn",
    "gpu_layers": "-ngl --gpu-layers --n-gpu-layers",
    "cpu_moe_layers": "-cmoe --cpu-moe -ncmoe --n-cpu-moe",
    "devices": "-dev --device",
    "split_mode": "-sm --split-mode",
    "tensor_split": "-ts --tensor-split",
    "main_gpu": "-mg --main-gpu",
    "threads": "-t --threads",
    "load_mode": "-lm --load-mode --mlock --mmap --no-mmap -dio --direct-io",
    "no_host": "--no-host",
    "cache_ram_mib": "-cram --cache-ram",
    "checkpoints": "-ctxcp --ctx-checkpoints --swa-checkpoints",
    "checkpoint_step": "-cms --checkpoint-min-step -cpent --checkpoint-every-n-tokens",
    "cache_reuse": "--cache-reuse",
    "slot_similarity": "-sps --slot-prompt-similarity",
    "swa_full": "--swa-full",
    "jinja": "--jinja --no-jinja",
    "chat_template": "--chat-template",
    "chat_template_file": "--chat-template-file",
    "template_arguments": "--chat-template-kwargs",
    "reasoning": "-rea --reasoning",
    "reasoning_budget": "--reasoning-budget",
    "reasoning_format": "--reasoning-format",
    "preserve_reasoning": "--reasoning-preserve --no-reasoning-preserve",
    "host": "--host",
    "port": "--port",
    "api_key_file": "--api-key-file",
    "cors_origins": "--cors-origins",
    "slot_save_path": "--slot-save-path",
    "metrics": "--metrics",
    "log_timestamps": "--log-timestamps --no-log-timestamps",
    "log_prefix": "--log-prefix --no-log-prefix",
    "log_file": "--log-file",
    "log_verbosity": "-lv --log-verbosity --verbosity",
    "speculation.kind": "--spec-type",
    "speculation.n_max": "--spec-draft-n-max --draft --draft-n --draft-max",
    "speculation.n_min": "--spec-draft-n-min --draft-min --draft-n-min",
    "speculation.p_min": "--spec-draft-p-min --draft-p-min",
    "speculation.n_match": "--spec-ngram-mod-n-match",
    "speculation.ngram_n_max": "--spec-ngram-mod-n-max",
    "speculation.ngram_n_min": "--spec-ngram-mod-n-min",
    "speculation.size_n": "--spec-ngram-size-n --spec-ngram-simple-size-n --spec-ngram-map-k-size-n",
    "speculation.size_m": "--spec-ngram-size-m --spec-ngram-simple-size-m --spec-ngram-map-k-size-m",
    "speculation.min_hits": "--spec-ngram-min-hits --spec-ngram-simple-min-hits",
    "speculation.cross_context": "--spec-dflash-cross-ctx",
    "speculation.draft_context": "-cd --ctx-size-draft --spec-draft-ctx-size",
    "speculation.draft_kv_type_k": "-ctkd --cache-type-k-draft --spec-draft-type-k",
    "speculation.draft_kv_type_v": "-ctvd --cache-type-v-draft --spec-draft-type-v",
    "speculation.draft_gpu_layers": "-ngld --gpu-layers-draft --n-gpu-layers-draft --spec-draft-ngl",
    "speculation.draft_devices": "-devd --device-draft --spec-draft-device",
    "speculation.adaptive": "--spec-dm-adaptive --no-spec-dm-adaptive --spec-dm-controller --spec-autotune",
    "speculation.branch_budget": "--spec-branch-budget --tree-budget",
    "sampling.temperature": "--temp",
    "sampling.top_k": "--top-k",
    "sampling.top_p": "--top-p",
    "sampling.min_p": "--min-p",
    "sampling.repeat_penalty": "--repeat-penalty",
}


def profile_key(flag: str) -> str | None:
    """The key that is translated into `flag`, None for flags that only extra_args can bring."""
    plain = flag.replace("_", "-") if flag.startswith("--") else flag
    return next((key for key, flags in FLAGS_BY_KEY.items() if plain in flags.split()), None)


def where_to_change(flag: str) -> str:
    """For hints: where in a profile `flag` comes from."""
    key = profile_key(flag)
    return (
        f"`{key}` in the profile, or {flag} in its extra_args"
        if key
        else f"{flag} in the profile's extra_args"
    )
