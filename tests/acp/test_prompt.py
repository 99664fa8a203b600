"""What an editor sends as a prompt becomes one text for the session."""

from pathlib import Path

import pytest
from acp import (
    RequestError,
    audio_block,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
    text_block,
)

from agent.acp.prompt import images_in, prompt_text


def test_a_linked_file_becomes_a_mention_where_it_stands(tmp_path: Path):
    blocks = [
        text_block("Explain"),
        resource_link_block("a.py", f"file://{tmp_path}/src/a%20b.py#L3:7"),
        text_block("please"),
    ]
    assert prompt_text(blocks, tmp_path) == 'Explain @"src/a b.py":3-7 please'


def test_a_link_to_elsewhere_is_named(tmp_path: Path):
    blocks = [text_block("See "), resource_link_block("docs", "https://example.org/x")]
    assert prompt_text(blocks, tmp_path) == "See docs (https://example.org/x)"
    outside = [text_block("See "), resource_link_block("passwd", "file:///etc/passwd")]
    assert prompt_text(outside, tmp_path) == "See passwd (file:///etc/passwd)"


def test_a_text_that_comes_along_stands_fenced_behind_the_prompt(tmp_path: Path):
    resource = embedded_text_resource(f"file://{tmp_path}/a.md#L2-L3", "```\n@b\n```\n")
    text = prompt_text([text_block("Mend "), resource_block(resource)], tmp_path)
    assert text == "Mend a.md, lines 2-3\n\na.md, lines 2-3:\n````\n```\n@b\n```\n````"


def test_texts_in_a_row_are_paragraphs(tmp_path: Path):
    assert prompt_text([text_block("One."), text_block("Two.")], tmp_path) == "One.\n\nTwo."


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (audio_block("aGk=", "audio/wav"), "the prompt has a sound, which no model here takes"),
        (resource_block(embedded_blob_resource("file:///x.bin", "aGk=")), "text only, and /x.bin is none"),
        (text_block("  \n"), "the prompt is empty"),
    ],
)
def test_what_no_model_can_take_is_refused(block, said: str, tmp_path: Path):
    with pytest.raises(RequestError, match=said):
        prompt_text([block], tmp_path)


def test_images_become_mentions_of_their_files_where_they_stand(tmp_path: Path):
    blocks = [text_block("What is"), image_block("aGk=", "image/png"), text_block("about?")]
    assert images_in(blocks) == [b"hi"]
    assert prompt_text(blocks, tmp_path, ["/kept/a b.png"]) == 'What is @"/kept/a b.png" about?'


def test_an_image_that_is_no_base64_is_refused():
    with pytest.raises(RequestError, match="no base64"):
        images_in([image_block("a", "image/png")])
