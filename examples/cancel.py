"""Cancel a run from another thread, and go on with the same agent.

What was said so far is kept, and the next request is valid. Prints:

    cancelled: the user closed the window
    kept: Let me think
    next: Here is the short version.
"""

import threading

from gotato_py import Agent
from gotato_testkit import Do, ScriptedModel, Stall, say


def main() -> None:
    """The model says something and falls silent; a moment later, as a user would, another thread cancels."""
    user = threading.Timer(0.1, lambda: agent.cancel("the user closed the window"))
    model = ScriptedModel([[*say("Let me think")[:-1], Do(user.start), Stall()], say("Here is the short version.")])
    agent = Agent(model)
    result = agent.run("Explain everything.", check=False)
    user.join()
    print(f"{result.status}: {result.error}")
    print(f"kept: {result.text}")
    print(f"next: {agent.run('In short, please.').text}")


if __name__ == "__main__":
    main()
