"""Turns the prompts into token ids, with the template and the tokenizer of a running server.

    python prepare.py --server http://127.0.0.1:8080 --count 12000 --out prompts.json

The server is one of the target, for example of the profile `embedded-small`.
"""

import argparse
import json
import os
from pathlib import Path

import httpx
from prompts import held_out_prompts, training_prompts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", required=True)
    parser.add_argument("--count", type=int, default=12_000)
    parser.add_argument("--longest", type=int, default=400, help="tokens; longer prompts are left out")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    key = os.environ.get("LLAMA_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with httpx.Client(base_url=arguments.server, headers=headers, timeout=60) as server:
        seen: set[str] = set()
        train = []
        for messages in training_prompts(arguments.count):
            ids = _ids(server, messages)
            text = json.dumps(ids)
            if len(ids) <= arguments.longest and text not in seen:
                seen.add(text)
                train.append(ids)
        held_out = [_ids(server, messages) for messages in held_out_prompts()]
    arguments.out.write_text(json.dumps({"train": train, "held_out": held_out}), encoding="utf-8")
    print(f"{len(train)} prompts, {sum(map(len, train))} tokens; {len(held_out)} held out")


def _ids(server: httpx.Client, messages: list[dict[str, str]]) -> list[int]:
    prompt = server.post("/apply-template", json={"messages": messages}).raise_for_status().json()["prompt"]
    body = {"content": prompt, "add_special": False, "parse_special": True}
    return server.post("/tokenize", json=body).raise_for_status().json()["tokens"]


if __name__ == "__main__":
    main()
