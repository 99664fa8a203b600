"""One recorded session that nobody watches: from a server that answers to the result."""

import asyncio
import os
import time
import traceback
from dataclasses import replace
from functools import partial

from agent.app.background import start_in_background
from agent.app.chat.record import Record, RecordedConversation
from agent.app.files.authorship import Authorship
from agent.app.files.changes import Changes, commit_message, start_branch
from agent.app.files.commanded import CommandWatch
from agent.app.run.job import Job
from agent.app.run.past import branch_record, past_of
from agent.app.servers.carded import completed_profile
from agent.app.servers.foreign import remarks, require_window
from agent.app.servers.memory import looking_at, watch_of
from agent.app.servers.protocols import tried_protocol
from agent.app.servers.rescue import Rescuer
from agent.app.servers.serving import Serving
from agent.app.servers.speed_guard import SpeedGuard, guard_for
from agent.app.servers.warm import Warmth, note_of
from agent.app.turns.conversation import OpenConversation, Setting, model_for, open_conversation
from agent.app.turns.prompt_head import PromptHead, head_of
from agent.core.attempts import FRESH_ATTEMPT
from agent.core.cancel import closing
from agent.core.errors import PLEASE_REPORT, AgentError, ExitCode, ServerError, unexpected
from agent.core.events import (
    AssistantReplied,
    Event,
    Notice,
    Prefill,
    PrefixBroken,
    SessionStarted,
    StepFinished,
    TurnFinished,
    TurnReason,
    to_record,
)
from agent.core.messages import SystemMessage
from agent.core.stats import StepStats, total
from agent.headless.figures import figures_line
from agent.headless.jsonl import result_record
from agent.headless.outcome import RunOutcome
from agent.repo.git import RepoState, inspect
from agent.resources import state_folder
from agent.server.profile import Profile
from agent.server.record import Endpoint
from agent.session.catalogue import prune
from agent.session.ledger import SessionLedger
from agent.session.store import SessionStore

_LOOK_AT_THE_SERVER = "look at the server; what the run changed is kept, and `agent undo` takes it back"
_TRANSIENT = frozenset(
    {"text_delta", "reasoning_delta", "tool_call_delta", "prefill", "tool_output", "server_state"}
)


class UnattendedSession:
    """Runs one job with a server and an open record. Use `run`, once."""

    def __init__(
        self, job: Job, endpoint: Endpoint, store: SessionStore, old: tuple[Record, ...] = ()
    ) -> None:
        """`old` is what was recorded of an earlier time, which goes on."""
        self._job = job
        self._endpoint = endpoint
        self._store = store
        self._past = past_of(old)
        self._turns = self._past.turns
        self._ledger = SessionLedger(job.workspace, store.folder, report=self._warn)
        loop = asyncio.get_running_loop()
        watch = CommandWatch(
            self._ledger,
            store.folder,
            excluded=(state_folder(),),
            report=partial(loop.call_soon_threadsafe, self._warn),
        )
        self._authorship = Authorship(self._ledger, watch)
        self._before = RepoState(workspace=job.workspace)
        self._branch, self._news = self._past.branch, ""
        self._outcome = RunOutcome()
        self._steps: list[StepStats] = []
        self._failure: AgentError | None = None
        self._conversation: RecordedConversation | None = None
        self._used_tokens = 0
        self._tidied = False
        self._branched = False
        self._speed: SpeedGuard | None = None
        self._reuse = watch_of(job.serving, endpoint)
        self._instead: Serving | None = None
        self._completed: tuple[Endpoint, Profile] | None = None
        self._rescuer = self._rescuer_of(job.serving)

    async def run(self) -> int:
        """Does the job; returns the exit code. What goes wrong on the way is part of the result."""
        try:
            await self._converse()
        except AgentError as error:
            self._failure = error
        except Exception as error:
            # A mistake of this program: people need to see where, and programs still need their result.
            traceback.print_exc()
            self._failure = AgentError(unexpected(error), f"{PLEASE_REPORT} with the lines above")
        finished = self._outcome.finished
        if finished is None:
            finished = self._broken_off(self._failure or AgentError("the turn ended without a result"))
            self._emit(finished)
        self._ledger.close()
        if self._instead is not None and (problem := await self._instead.release(self._endpoint)):
            self._warn(problem)
        code = await self._conclude(finished)
        await self._keep()
        await self._learn()
        return code

    async def _learn(self) -> None:
        """How fast its prompts were read chooses the batch of the next server."""
        serving = self._instead or self._job.serving
        if self._steps and serving.profile.batch_seconds:
            from agent.app.servers.fitting import remember_steps  # the others end without it

            await remember_steps(serving, self._steps)

    async def _keep(self) -> None:
        """What the server has read of this conversation is kept for whoever goes on with it; see docs."""
        rates = [rate for step in self._steps if (rate := step.telling_prefill_rate)]
        rate = rates[-1] if rates else None
        if self._conversation is not None:
            warmth = Warmth(self._instead or self._job.serving, self._endpoint)
            messages = self._conversation.messages
            await warmth.keep_session(self._store.folder, messages, tokens=self._used_tokens, rate=rate)

    async def _converse(self) -> None:
        job = self._job
        require_window(self._endpoint)
        wanted = await job.in_time(job.serving.tool_protocol(self._endpoint))
        protocol, surprise = await job.in_time(tried_protocol(self._setting(wanted)))
        self._announce(protocol)
        self._speed = guard_for(job.serving, self._endpoint)
        if surprise:
            self._warn(surprise)
        if job.request.branch:
            await start_branch(job.workspace, job.request.branch)
            self._branched = True
            self._emit(Notice(text=f"on the new branch {job.request.branch}"))
        if self._past.goes_on:
            await asyncio.to_thread(self._ledger.begin_turn, self._past.turns + 1)
            self._news = await asyncio.to_thread(self._past.news, job.workspace, job.today())
        conversation = await job.in_time(open_conversation(job.task, self._setting(protocol), self._emit))
        warmth = Warmth(job.serving, self._endpoint, self._emit)
        note = note_of(job.workspace, job.request.profile)
        try:
            if self._past.goes_on:
                await job.in_time(warmth.bring_back(self._past.recorded))
            else:
                await job.in_time(warmth.read_head(conversation.head, job.early, note))
            try:
                await self._talk(conversation, protocol)
            finally:
                await warmth.leave_note(note)
        finally:
            await conversation.close()
            self._used_tokens = conversation.bench.model.used_tokens

    async def _talk(self, conversation: OpenConversation, protocol: str) -> None:
        """All attempts of a conversation that is open."""
        # After the check, whose by-products are not the run's work; meanwhile the first request is under way.
        inspecting = asyncio.ensure_future(inspect(self._job.workspace))
        try:
            begin = partial(self._begin, head_of(conversation.bench.model.protocol, self._endpoint.profile))
            async with closing(conversation.events(begin)) as events:
                async for event in events:
                    if isinstance(event, AssistantReplied):
                        self._before = await inspecting
                        self._note_branch()
                    self._emit(self._explained(event))
                    if isinstance(event, PrefixBroken) and event.cause == FRESH_ATTEMPT:
                        await self._change_draft(conversation, protocol)
        finally:
            inspecting.cancel()

    def _begin(self, head: PromptHead, system: SystemMessage) -> RecordedConversation:
        """The conversation of one attempt, each message of it on disk before the next request."""
        self._conversation, broken = self._past.begin(system, head, self._store.append)
        if broken:
            self._emit(PrefixBroken(cause=broken))
        self._turns += 1  # each attempt is a turn of the record
        self._conversation.begin_turn(self._turns)
        return self._conversation

    def _note_branch(self) -> None:
        """For who goes on with this session: the model is told of another branch then."""
        branch = self._before.branch_or_commit
        if branch and branch != self._branch:
            self._branch = branch
            self._store.append(branch_record(branch))

    async def _change_draft(self, conversation: OpenConversation, protocol: str) -> None:
        """Between two attempts: shorter drafts or a server without, if drafting turned out not to pay."""
        degraded = self._instead is not None and self._instead.degraded
        if self._speed is None or not self._speed.wants_change or degraded:
            return
        model = conversation.bench.model
        change = await self._job.in_time(self._speed.change(self._endpoint, model, self._job.output.show))
        if change is None:
            self._warn("the server keeps its draft, because another program uses it")
            return
        if change.endpoint is not None:
            self._moved(change.serving, change.endpoint)
            self._speed = guard_for(change.serving, change.endpoint)
            self._rescuer = self._rescuer_of(change.serving)
            await model.close()
            conversation.bench.model = model_for(self._setting(protocol), model.protocol)
        self._emit(change.event)

    def _rescuer_of(self, serving: Serving) -> Rescuer:
        return Rescuer(serving, self._endpoint, emit=self._emit, arrived=self._moved)

    def _moved(self, serving: Serving, endpoint: Endpoint) -> None:
        """Another server answers from now on; it is looked after at the end."""
        self._endpoint, self._instead = endpoint, serving
        self._reuse.moved(looking_at(serving, endpoint))
        if serving.degraded:
            self._speed = None  # there is no draft any more that could be to blame
        self._store.hide(endpoint.api_key)

    def _announce(self, protocol: str) -> None:
        profile = self._job.serving.profile
        self._emit(
            SessionStarted(
                session_id=self._store.id,
                workspace=str(self._job.workspace),
                profile=self._endpoint.profile,
                model=self._model_name(),
                context_tokens=self._endpoint.context_tokens,
                tool_protocol=protocol,
            )
        )
        for notice in (*self._job.serving.loaded.notices, *remarks(self._endpoint, profile, protocol)):
            self._warn(notice)
        if not os.access(self._job.workspace, os.W_OK):
            self._warn(f"the folder {self._job.workspace} is read-only, so nothing can be changed in it")

    def _model_name(self) -> str:
        profile, endpoint = self._job.serving.profile, self._endpoint
        if profile.target and endpoint.fingerprint is not None:
            return profile.target.file
        served = endpoint.model if endpoint.model != "local" else ""
        return f"{served} at {endpoint.base_url}" if served else endpoint.base_url

    def _profile(self) -> Profile:
        """Put together once for each server, as all the cards are read for it."""
        if self._completed is None or self._completed[0] != self._endpoint:
            self._completed = self._endpoint, completed_profile(self._job.serving, self._endpoint)
        return self._completed[1]

    def _setting(self, protocol: str) -> Setting:
        serving = self._job.serving
        return Setting(
            workspace=self._job.workspace,
            settings=serving.loaded.settings,
            profile=self._profile(),
            endpoint=self._endpoint,
            protocol=protocol,
            ledger=self._ledger,
            authorship=self._authorship,
            spill_folder=self._store.folder / "output",
            key_variables=serving.key_variables(),
            deadline=self._job.deadline,
            cancel=self._job.cancel,
            recover=self._rescuer,
            goes_on=self._past.goes_on,
            replies_before=self._past.replies,
            log=self._past.log,
            news=self._news,
        )

    def _emit(self, event: Event) -> None:
        """What every event passes through: the judge of the run, the session file, the output."""
        self._outcome.observe(event)
        if isinstance(event, StepFinished):
            self._steps.append(event.stats)
        if event.type not in _TRANSIENT:
            self._store.append(to_record(event))
        self._job.output.show(event)
        for remark in (self._speed.observe(event) if self._speed else None, self._reuse.observe(event)):
            if remark is not None:
                self._emit(remark)
        if isinstance(event, Prefill | AssistantReplied):
            self._tidy_once()

    def _warn(self, text: str) -> None:
        self._emit(Notice(text=text, level="warning"))

    def _tidy_once(self) -> None:
        """Old sessions go while the server is busy with the first request, and nobody waits for that."""
        if not self._tidied:
            self._tidied = True
            start_in_background(lambda: prune(state_folder(), self._job.workspace))

    def _explained(self, event: Event) -> Event:
        """The end of a turn because of the server, in the words of the server's own log if it is ours."""
        if not isinstance(event, TurnFinished) or event.reason != "server_failed":
            return event
        serving = self._instead or self._job.serving
        cause = self._rescuer.failure or serving.why_it_ended(self._endpoint)
        self._failure = cause or ServerError(event.detail, _LOOK_AT_THE_SERVER)
        return replace(event, detail=self._failure.message)

    def _broken_off(self, error: AgentError) -> TurnFinished:
        """The end of a turn that did not come to its own."""
        reasons: dict[ExitCode, TurnReason] = {
            ExitCode.INTERRUPTED: "cancelled",
            ExitCode.LIMIT: "time_limit",
            ExitCode.SERVER: "server_failed",
        }
        return TurnFinished(
            reason=reasons.get(error.exit_code, "gave_up"),
            answer="",
            detail=error.message,
            steps=len(self._steps),
            stats=total(self._steps),
        )

    async def _conclude(self, finished: TurnFinished) -> int:
        changes = Changes(workspace=self._job.workspace, before=self._before, authorship=self._authorship)
        changed = await changes.find()
        code = self._failure.exit_code if self._failure else self._outcome.exit_code
        commit = None
        if self._job.request.commit and changed and finished.reason == "done":
            try:
                message = commit_message(finished.answer, self._job.task.text)
                commit = await changes.commit(changed, message, self._emit)
            except AgentError as error:
                self._failure = error
                code = code or error.exit_code
        if code and self._branched:
            branch = self._job.request.branch
            self._emit(Notice(text=f"you are now on the branch {branch}; `git switch -` goes back"))
        self._finish(finished, changes.names(changed), commit, code)
        return int(code) if self._job.output.delivered else int(code) or int(ExitCode.NOT_SOLVED)

    def _finish(self, finished: TurnFinished, changed: list[str], commit: str | None, code: ExitCode) -> None:
        seconds = time.monotonic() - self._job.started
        record = result_record(
            finished,
            exit_code=int(code),
            session_id=self._store.id,
            changed=changed,
            denied=self._outcome.denied,
            check_passed=self._outcome.check.passed if self._outcome.check else None,
            seconds=seconds,
            commit=commit,
        )
        if self._failure:
            record |= {"error": self._failure.message, "hint": self._failure.hint}
        self._store.append(record)
        self._job.output.finish(
            finished,
            record,
            changed=changed,
            denied=self._outcome.denied[-1] if code is ExitCode.DENIED else "",
            summary=summary_line(finished, seconds),
            failure=self._failure,
        )


def summary_line(finished: TurnFinished, seconds: float) -> str:
    """Steps, seconds and the figures of the model, as far as there are any."""
    steps = f"{finished.steps} step{'' if finished.steps == 1 else 's'}"
    return " · ".join(filter(None, (steps, f"{seconds:.1f} s", figures_line(finished.stats))))
