"""The card of what a person ran: a measurement ends with its table, not with its progress."""

from agent.core.events import ToolFinished
from agent.ui.conversation.card import ToolCard


def test_a_measurement_shows_progress_while_it_runs_and_then_its_table():
    card = ToolCard("user-1", "bench", {"prompts": 1})
    card.add_output("warming up\n")
    assert card.output() == "warming up\n"
    finished = ToolFinished(call_id="user-1", tool="bench", outcome="ok", text="prompt  tok/s", seconds=1.0)
    card.finish(finished)
    shown = "\n".join(line.text for line in card.render(80))
    assert "prompt  tok/s" in shown
    assert "warming up" not in shown
