"""How far the model is with its plan, in one row."""

from textual.content import Content
from textual.widget import Widget

from agent.ui.plan import Plan, done_count, next_step
from agent.ui.text import one_line

_DONE, _OPEN = "■", "□"
_MOST_MARKS = 12


class PlanLine(Widget):
    """Gone while there is no plan, and once all of it is done."""

    can_focus = False

    def __init__(self) -> None:
        super().__init__(id="plan")
        self._plan: Plan = ()
        self.display = False

    def show(self, plan: Plan) -> None:
        if list(plan) == list(self._plan):
            return
        self._plan = plan
        self.display = bool(next_step(plan))
        self.refresh(layout=True)

    def render(self) -> Content:
        done, count = done_count(self._plan), len(self._plan)
        marks = f"  {_DONE * done}{_OPEN * (count - done)}" if count <= _MOST_MARKS else ""
        return Content.assemble(
            (f"plan {done}/{count}{marks}  ", "$text-accent"), (one_line(next_step(self._plan)), "$quiet")
        ).truncate(self.content_size.width, ellipsis=True)
