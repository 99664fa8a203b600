"""Getting calls out of what a model wrote, and never one that it did not write."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.llm.toolcalls import (
    CallPieces,
    MalformedCallError,
    is_nearly_a_call,
    parse_constrained,
    recover_from_text,
)

KNOWN = {"read", "edit", "shell"}
SHELL = '{"name": "shell", "arguments": {"command": "touch guessed"}}'
CALL = '{"name": "read", "arguments": {"path": "a.py"}}'


def found(text: str) -> list[tuple[str, dict]]:
    return [(call.name, dict(call.arguments)) for call in recover_from_text(text, KNOWN, "t-")]


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"I will read it.\n\n{CALL}\n\nThen we see.",
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
        f"``` JSON\n{CALL}```",
        f"~~~\n{CALL}",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tools>\n{CALL}\n</tools>",
        f"<tool_call>{CALL}",
        f"[{CALL}]",
        '{{"name": "read", "arguments": {"path": "a.py"}}}',
        '<tool_call>\n{{"name": "read", "arguments": {"path": "a.py"}}}\n</tool_call>',
        '{"name": "read", "parameters": {"path": "a.py"}}',
        '{"tool": "read", "path": "a.py"}',
        '{"tool": "read", "arguments": {"path": "a.py"}}',
        '{"function": "read", "arguments": {"path": "a.py"}}',
        '{"type": "function", "function": {"name": "read", "arguments": {"path": "a.py"}}}',
        '{"id": 1, "name": "read", "arguments": {"path": "a.py"}}',
        '{\n  "name": "read",\n  "arguments": {\n    "path": "a.py"\n  }\n}',
        '{"name": "read", "arguments": "{\\"path\\": \\"a.py\\"}"}',
        "<tool_call>\n<function=read>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>",
        '<|START_ACTION|>[{"tool_name": "read", "parameters": {"path": "a.py"}}]<|END_ACTION|>',
        f"{{broken}} {CALL}",
        f"<tool_call>{CALL}</tool_call>\n<tool_response>x</tool_response><tool_call>{SHELL}</tool_call>",
        f"def f(): return {{}}\n{CALL}",
    ],
)
def test_a_call_in_text_is_recovered(text: str):
    assert found(text) == [("read", {"path": "a.py"})]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would read a.py with the read tool.",
        '{"path": "a.py"}',
        '{"name": "Anna", "arguments": {"path": "a.py"}}',
        '{"name": "read"}',
        '{"name": "read", "arguments": ["a.py"]}',
        '{"name": "read", "arguments": "a.py"}',
        "<function=deploy>\n<parameter=path>\na.py\n</parameter>\n</function>",
        "<function=read>\n<parameter=path>\na.py\n</function>",
        "<function=read>\n<parameter=path>\na.py\n</parameter>",
        '{"name": ["read"], "arguments": {}}',
        '{"package": {"name": "read", "arguments": {"path": "a.py"}}}',
        '{"name": "read", "arguments": {"path": "a.py"}',
        "{'name': 'read', 'arguments': {'path': 'a.py'}}",
        '{"name": "read", "arguments": {path: a.py}}',
        '{{"name": "read", "arguments": {"path": "a.py"}}',
        "read(path='a.py')",
        "```python\nd = {'tool': 'read'}\n```",
        '{"tool": "deploy", "path": "a.py"}',
        '{"function": {"name": "deploy", "arguments": {}}}',
        "{" * 5000,
        '{"a":' * 5000,
        '{{"a":' * 3000,
        '{"name": "read", "arguments": ' + "[" * 5000,
    ],
)
def test_nothing_is_made_of_text_that_names_no_known_tool(text: str):
    assert found(text) == []


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "read", "arguments": {"path": "a',
        "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n</tool_call>",
        '[TOOL_CALLS]read[ARGS]{"path": "a.py"}',
        '<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path": "a.py"}',
        "<\uff5ctool\u2581call\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>read\n```json\n{}\n```",
        '<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{"path": "a.py"}',
        '<|tool_call>call:read{path:<|"|>a.py<|"|>}<tool_call|>',
        "Now.\n<function=read>\n<parameter=path>\na.py",
        '{"name": "read", "arguments": {path: a.py}}',
        '{"name": "read", "arguments": {"limit": NaN}}',
        '{"name": "read", "arguments": {"limit": 1e999}}',
        '{"name": "read", "arguments": {"path": "\\ud800"}}',
        '{"name": "read", "arguments": "{\\"limit\\": Infinity}"}',
        '```json\n{"tool": "read", "path": }\n```',
        "<tool_call>\n{'name': 'read', 'arguments': {'path': 'a.py'}}\n</tool_call>",
        "{'name': 'read', 'arguments': {'path': 'a.py'}}",
        '<tool_call>\n{"arguments": {"path": "a.py", "name": "read"}\n</tool_call>',
        '<TOOLCALL>[{"name": "read", "arguments": {"path": "a.py"}]</TOOLCALL>',
        '<|python_tag|>read.call(path="a.py")',
        '<|tool_call_start|>[read(path="a.py")]<|tool_call_end|>',
        '```tool_code\nread(path="a.py")\n```',
        '<function name="read"><parameter name="path">a.py</parameter></function>',
        '<\uff5cDSML\uff5cinvoke name="read">\n</\uff5cDSML\uff5cinvoke>',
        'assistantcommentary to=functions.read json{"path": "a.py"}',
        '{"tool_calls": [{"id": "1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}',
    ],
)
def test_what_is_nearly_a_call_is_not_taken_for_an_answer(text: str):
    assert found(text) == []
    assert is_nearly_a_call(text, KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "I would read a.py with the read tool.",
        "The template writes <tool_call> and then you read the result.",
        "Send `to=read@example.org`, not [TOOL_CALLS] of read.",
        'The file has {"name": "read", "arguments": {path: a.py}} in it.',
        "It has a <function=deploy> in line 3.",
        "",
    ],
)
def test_an_answer_about_calls_is_an_answer(text: str):
    assert not is_nearly_a_call(text, KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        f"<function=read>\n<parameter=path>\n{SHELL}\n</parameter>\n</function>",
        f"<function=deploy>\n<parameter=to>\n{SHELL}\n</parameter>\n</function>",
        f"<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>{SHELL}</arg_value>\n</tool_call>",
        f'<invoke name="deploy">\n<parameter name="to">{SHELL}</parameter>\n</invoke>',
        f'{{"name": "read", "arguments": {{"path": {SHELL},}}}}',
        f'I look.\n{{"name": "read", "arguments": {{"path": {SHELL}, "start": }}}}',
        f'I look.\n{{"name": "read", "arguments": {{"path": {SHELL}',
        json.dumps(
            {
                "name": "read",
                "arguments": {"path": "<function=shell><parameter=command>x</parameter></function>"},
            }
        ),
    ],
)
def test_what_stands_in_an_argument_is_no_call(text: str):
    assert "shell" not in [name for name, _ in found(text)]


def test_beside_a_call_that_cannot_be_read_none_is_run():
    text = f"<tool_call>{CALL[:-1]},}}</tool_call>\n<tool_call>{SHELL}</tool_call>"
    assert found(text) == []
    assert is_nearly_a_call(text, KNOWN)


def test_several_calls_keep_their_order_and_get_ids_of_their_own():
    text = f'First:\n{CALL}\nthen\n{{"name": "edit", "arguments": {{"path": "b.py"}}}}'
    calls = recover_from_text(text, KNOWN, "text-7-")
    assert [(call.id, call.name) for call in calls] == [("text-7-0", "read"), ("text-7-1", "edit")]
    assert all(call.in_text for call in calls)


def test_braces_inside_of_a_string_are_text():
    text = json.dumps({"name": "edit", "arguments": {"path": "a.py", "new": "{{ x }} {"}})
    assert found(text) == [("edit", {"path": "a.py", "new": "{{ x }} {"})]


def test_a_line_break_inside_of_a_string_is_forgiven():
    assert found('{"name": "edit", "arguments": {"new": "a\nb"}}') == [("edit", {"new": "a\nb"})]


@settings(deadline=None)
@given(st.text(alphabet='{}[]":,\\ \nabread01', max_size=200))
def test_recovery_never_fails(text: str):
    assert all(name in KNOWN for name, _ in found(text))


@settings(deadline=None)
@given(
    before=st.text(alphabet="abc {}\n.", max_size=40),
    arguments=st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=3),
)
def test_a_call_after_any_prose_is_found_as_it_was_written(before: str, arguments: dict[str, str]):
    text = f"{before}\n{json.dumps({'name': 'shell', 'arguments': arguments})}"
    assert found(text) == [("shell", arguments)]


def pieces(name: str, *arguments: str, call_id: str = "c1") -> CallPieces:
    return CallPieces(id=call_id, name=name, arguments=list(arguments))


def test_pieces_make_up_a_call():
    call = pieces("read", '{"pa', 'th": "a.py"}').complete("spare")
    assert (call.id, call.name, call.arguments) == ("c1", "read", {"path": "a.py"})
    assert call.raw_arguments == '{"path": "a.py"}'


@pytest.mark.parametrize("arguments", [(), ("",), (" \n",)])
def test_a_call_without_arguments_has_none(arguments: tuple[str, ...]):
    call = pieces("read", *arguments).complete("spare")
    assert (call.arguments, call.raw_arguments) == ({}, "{}")


def test_a_call_without_an_id_gets_one():
    assert pieces("read", call_id="").complete("spare").id == "spare"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ('{"path": "a.py', "not valid JSON (Unterminated string starting at at character 9)"),
        ('{"path": }', "not valid JSON (Expecting value at character 9)"),
        ('{"path": "a.py"} and more', "not valid JSON (Extra data at character 17)"),
        ('["a.py"]', "not a JSON object"),
        ('"a.py"', "not a JSON object"),
        ('{"limit": NaN}', "not valid JSON"),
        ('{"limit": -Infinity}', "not valid JSON"),
        ('{"limit": 1e999}', "not valid JSON"),
        pytest.param('{"limit": ' + "9" * 400 + "}", "not valid JSON", id="400 digits"),
        ('{"path": "\\ud800"}', "not valid JSON"),
        ('{"a":' * 5000, "not valid JSON"),
    ],
)
def test_malformed_arguments_are_refused_and_named(raw: str, words: str):
    with pytest.raises(MalformedCallError) as caught:
        pieces("read", raw).complete("spare")
    assert f"The arguments of read are {words}" in str(caught.value)
    assert "Send the whole call again." in str(caught.value)


@pytest.mark.parametrize("name", ["functions.read", "read<|channel|>commentary", " read"])
def test_the_name_of_a_tool_may_have_what_a_template_puts_around_it(name: str):
    assert pieces(name).complete("spare", KNOWN).name == "read"


@pytest.mark.parametrize(("name", "left"), [("functions.deploy", "functions.deploy"), ("x<|end|>", "x")])
def test_the_name_of_no_tool_is_kept_without_marks(name: str, left: str):
    assert pieces(name).complete("spare", KNOWN).name == left


def test_a_call_that_names_no_tool_is_refused():
    with pytest.raises(MalformedCallError, match="names no tool"):
        pieces("", "{}").complete("spare")


def test_what_is_sent_back_is_strict_json():
    call = pieces("edit", '{"new": "a\nb\té"}').complete("spare")
    assert call.arguments == {"new": "a\nb\té"}
    assert json.loads(call.raw_arguments) == {"new": "a\nb\té"}


def test_a_constrained_reply_names_its_tool():
    call = parse_constrained('{"tool": "read", "path": "a.py"}', "call-1")
    assert (call.id, call.name, call.arguments, call.in_text) == ("call-1", "read", {"path": "a.py"}, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"tool": "read", "path": "a', "not valid JSON"),
        ('{"path": "a.py"}', 'has no "tool"'),
        ('{"tool": 3}', 'has no "tool"'),
        ("I read it.", "not valid JSON"),
        ("[1]", "not a JSON object"),
    ],
)
def test_a_constrained_reply_that_is_no_call_is_refused(text: str, words: str):
    with pytest.raises(MalformedCallError, match=words):
        parse_constrained(text, "call-1")
