"""Has a model look at a folder, shows what it does, and says what that cost.

python examples/library/explain.py [FOLDER] [PROFILE]
"""

import asyncio
import sys

from agent import Agent, AgentError, Answer, ApprovalRequest, TextDelta, ToolFinished, ToolStarted

PROMPT = "Look at the files of this folder and tell me in two sentences what it is for."


def approve(request: ApprovalRequest) -> Answer:
    """Nothing that would have to be asked about is done here."""
    return Answer(kind="deny", reason=f"this program only looks: {request.reason}")


async def main(folder: str, profile: str) -> int:
    async with Agent(folder, profile=profile, permissions="ask", approve=approve) as agent:
        async for event in agent.run(PROMPT):
            match event:
                case TextDelta(text=text):
                    print(text, end="", flush=True)
                case ToolStarted(tool=tool, arguments=arguments):
                    print(f"\n[{tool} {dict(arguments)}]")
                case ToolFinished(outcome=outcome) if outcome != "ok":
                    print(f"[{outcome}]")
        result = agent.result
        speed = result.stats.decode_rate
        print(f"\n{result.reason}, {result.steps} steps", f"{speed:.1f} tok/s" if speed else "", sep=", ")
        print(f"go on with: agent --resume {agent.session_id}")
    return 0 if result.is_done else 1


if __name__ == "__main__":
    folder, profile = (*sys.argv[1:3], *(".", "")[len(sys.argv[1:3]) :])
    try:
        sys.exit(asyncio.run(main(folder, profile)))
    except AgentError as error:
        sys.exit(f"{sys.argv[0]}: {error}")
