"""Line mode: reads lines, prints text, never moves the cursor. For screen readers and simple terminals."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Sequence
from typing import Any, TextIO

from textual.content import Content

from agent.core.errors import AgentError, UsageError
from agent.core.events import (
    ApprovalRequest,
    ApprovalSettled,
    AssistantReplied,
    Event,
    Notice,
    QuestionAsked,
    QuestionSettled,
    TurnFinished,
)
from agent.core.handle import Answer, SessionFacts, SessionHandle, SessionMode
from agent.core.tool import FileDiff
from agent.ui.commands.catalogue import looks_like_command, run_line
from agent.ui.commands.command import Level
from agent.ui.meter import TurnMeter, turn_records
from agent.ui.options import Opening, UiOptions
from agent.ui.plain_form import PlainForms
from agent.ui.plain_setup import PlainSetup
from agent.ui.plain_text import PlainWriter
from agent.ui.plan import Plan, updated
from agent.ui.request_text import described, diff_text, heading
from agent.ui.result_text import as_text
from agent.ui.widgets.menu import Choice

_ANSWERS = {"1": "once", "y": "once", "2": "session", "3": "always"}


async def run_plain(options: UiOptions, source: TextIO, output: TextIO) -> int:
    """Runs until the input ends or `/quit`; returns the exit code.

    Raises:
        AgentError: the session cannot be opened.
    """
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    front = PlainFront(options, output, lines, is_person=source.isatty())
    front.say("agent, line mode. /help lists the commands, /quit ends.")
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read, args=(source, lines, loop), daemon=True).start()
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGINT, front.stop)
    await front.open(options.opening)
    if options.prompt.strip():
        await front.take(options.prompt)
    while not front.is_over and (line := await front.next_line()) is not None:
        await front.take(line)
    await front.finish()
    return 0


def _read(source: TextIO, lines: "asyncio.Queue[str | None]", loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for more
        for line in source:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)


class PlainFront:
    """One session in line mode; also the `Host` of its slash commands.

    `lines` are those that are typed, None at their end. `is_person`: somebody types them, and can be asked.
    """

    def __init__(
        self, options: UiOptions, output: TextIO, lines: "asyncio.Queue[str | None]", *, is_person: bool
    ) -> None:
        self._options = options
        self._writer = PlainWriter(output)
        self._lines = lines
        self._handle: SessionHandle | None = None
        self._follower: asyncio.Task[None] | None = None
        self._requests: list[ApprovalRequest] = []
        self._forms = PlainForms(self.say, self.service)
        self._idle = asyncio.Event()
        clock = asyncio.get_running_loop().time
        self._meter = TurnMeter(clock)
        self._setup = PlainSetup(options.setup, self.say, self.next_line if is_person else None, clock)
        self.last_reply = ""
        self.plan: Plan = ()
        self.is_over = False

    @property
    def facts(self) -> SessionFacts | None:
        return self._handle.facts if self._handle else None

    def say(self, text: str) -> None:
        self._writer.line(text)

    async def next_line(self) -> str | None:
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)  # for whoever asks next
            return None
        return line.rstrip("\r\n")

    async def open(self, opening: Opening) -> None:
        """Raises AgentError: the session cannot be opened."""
        await self._setup.run(opening)
        if self.is_over:
            return
        self._handle = await self._options.open_session(opening)
        facts = self._handle.facts
        self.say(f"session {facts.session_id}, profile {facts.profile}, mode {facts.mode}")
        self._idle.set()
        self._follower = asyncio.create_task(self._follow(self._handle))
        await self._setup.tell_the_rest(opening)

    async def take(self, line: str) -> None:
        """Acts on one line of input; what goes wrong is said, and the session goes on."""
        try:
            await self._act(line)
        except AgentError as error:
            self.say(str(error))

    async def _act(self, line: str) -> None:
        handle = self._handle
        is_form = self._forms.is_open and not self._requests  # where an empty line says something
        if not (line.strip() or is_form):
            return
        if handle is None:
            await self._act_without_session(line)
        elif self._requests:
            self._answer(handle, line.strip())
        elif is_form:
            await self._forms.take(line)
        elif looks_like_command(line.strip()):
            await run_line(self, line)
        elif line.startswith("!"):
            # Its events tell what it printed.
            await self.service("shell", command=line.lstrip("!").strip(), context=not line.startswith("!!"))
        elif handle.facts.is_running:
            handle.steer(line)
            self.say("(reaches the model after its current tool)")
        else:
            self._idle.clear()
            handle.prompt(line)

    async def _act_without_session(self, line: str) -> None:
        if not looks_like_command(line.strip()):
            raise UsageError("there is no session", "/new opens one")
        await run_line(self, line)

    def stop(self) -> None:
        """Ctrl+C: stops a download or the turn; ends the session where there is none."""
        if self._setup.stop():
            return
        if self._handle is not None and self._handle.facts.is_running:
            self._handle.cancel()
        else:
            self.is_over = True
            self._lines.put_nowait(None)

    async def finish(self) -> None:
        """The input ended: a running turn may end by itself, questions are answered with no."""
        handle = self._handle
        if handle is None:
            return
        for request in self._requests:
            handle.answer(request.request_id, Answer(kind="deny", reason="nobody is there to ask"))
        await self._forms.give_up()
        if not self.is_over:
            await self._idle.wait()
        await handle.close()
        if self._follower is not None:
            await self._follower

    async def _follow(self, handle: SessionHandle) -> None:
        async for event in handle.events():
            self._show(event)

    def _show(self, event: Event) -> None:
        self._meter.note(event)
        self._writer.show(event)
        if isinstance(event, ApprovalRequest):
            self._requests.append(event)
            if len(self._requests) == 1:
                self._ask()
        elif isinstance(event, ApprovalSettled):
            first = self._requests[:1]
            self._requests = [one for one in self._requests if one.request_id != event.request_id]
            if self._requests and self._requests[:1] != first:
                self._ask()
        elif isinstance(event, QuestionAsked):
            self._forms.add(event)
        elif isinstance(event, QuestionSettled):
            self._forms.settle(event.question_id)
        elif isinstance(event, AssistantReplied):
            self.plan = updated(self.plan, event.text)
        elif isinstance(event, TurnFinished):
            self.last_reply = event.answer or self.last_reply
            self._idle.set()

    def _ask(self) -> None:
        request = self._requests[0]
        self.say(heading(request, len(self._requests) - 1).plain)
        self.say(described(request).plain)
        rule = request.suggested_rule
        more = f", 2 this session ({rule}), 3 always" if rule else ""
        self.say(f"1 yes{more}, or type why not")

    def _answer(self, handle: SessionHandle, line: str) -> None:
        request = self._requests[0]
        kind = _ANSWERS.get(line.lower())
        if kind is None or (kind != "once" and not request.suggested_rule):
            reason = "" if line.lower() in ("n", "no", "4") else line
            handle.answer(request.request_id, Answer(kind="deny", reason=reason))
        elif kind == "once":
            handle.answer(request.request_id, Answer(kind="once"))
        else:
            wide = "session" if kind == "session" else "always"
            handle.answer(request.request_id, Answer(kind=wide, rule=request.suggested_rule))

    # -- the host of slash commands --------------------------------------------------------------------

    async def service(self, name: str, /, **arguments: Any) -> Any:
        if name in self._options.services:
            return await self._options.services[name](arguments)
        if self._handle is None:
            raise UsageError("there is no session")
        return await self._handle.command(name, arguments)

    def tell(self, text: str, level: Level = "info") -> None:
        self._writer.show(Notice(text=text, level=level))

    def show_page(self, title: str, text: str | Content) -> None:
        self.say(f"{title}\n{text.plain if isinstance(text, Content) else text}")

    async def redraw(self) -> None:
        self.say("(what was said since then is gone from the conversation)")

    def give_back(self, text: str) -> None:
        if text:
            self.say(f"the message was:\n{text}")

    def show_diffs(self, title: str, diffs: Sequence[FileDiff]) -> None:
        self.say(f"{title}\n{diff_text(diffs).plain}")

    async def pick(self, title: str, choices: Sequence[Choice]) -> Choice | None:
        self.say(title)
        for number, choice in enumerate(choices, start=1):
            self.say(f"{number}  {choice.label}  {choice.note}  {choice.more}".rstrip())
        self.say("A number, or an empty line to go back:")
        number = (await self.next_line() or "").strip()
        is_known = number.isdecimal() and 1 <= int(number) <= len(choices)
        return choices[int(number) - 1] if is_known else None

    async def prepare(self, profile: str) -> bool:
        return await self._setup.run(Opening(profile=profile))

    async def reopen(self, opening: Opening) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            await handle.close()
        if self._follower is not None:
            await self._follower
        try:
            await self.open(opening)
        except AgentError as error:
            if opening == Opening():
                raise
            self.say(str(error))
            self.say("a new session is opened instead")
            await self.open(Opening())

    def ask_model(self, text: str) -> None:
        if self._handle is not None:
            self._idle.clear()
            self._handle.prompt(text)

    def set_mode(self, mode: SessionMode) -> None:
        if self._handle is not None:
            self._handle.set_mode(mode)

    def copy(self, text: str) -> str:
        from agent.ui.clipboard import Clipboard

        return Clipboard(None, os.environ).copy(text)

    def themes(self) -> list[str]:
        return []

    def use_theme(self, name: str) -> None:
        self.say("line mode has no colours")

    def show_turns(self) -> None:
        self.say(as_text(turn_records(self._meter.turns)))

    def key_table(self) -> Sequence[tuple[str, str, str]]:
        return [("stop", "Ctrl+C", "Interrupt, or end"), ("end", "Ctrl+D", "End")]

    def quit(self) -> None:
        self.is_over = True
