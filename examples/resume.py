"""A process is killed in the middle of a payment, started again, and goes on without paying twice.

`python resume.py FOLDER` is one start of a shop's process; its session is a file in that folder. The first start is
killed when the money has left and nobody has been told. The second one opens the same session: there the call is closed
as "effect unknown", and the model looks the payment up instead of making it again. Without a folder the program does
both starts itself. Prints:

    first start:
      paying 20 € for order 7
      (killed)
    second start:
      the call of pay: cancelled, ran: unknown
      looking up order 7
      Order 7 is paid: 20 €.
    payments made: 1
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from gotato_py import Agent, ToolMessage, UserMessage, tool
from gotato_session import FileStore
from gotato_testkit import ScriptedModel, call, say

ORDER = UserMessage("Please pay order 7.", id="order-7")


def shop(folder: Path) -> None:
    """One start of the process: it works on the session until it is done, or dead."""
    payments = folder / "payments"  # the bank, which knows nothing of sessions

    @tool(effect="write_external")
    def pay(order: int) -> str:
        """Pays an order."""
        print(f"  paying 20 € for order {order}", flush=True)
        with payments.open("a") as file:
            file.write(f"{order}\n")
        os.kill(os.getpid(), signal.SIGKILL)  # the power fails, the container is stopped, memory runs out …
        return "paid"

    @tool(effect="read")
    def look_up(order: int) -> str:
        """Says whether an order is paid."""
        print(f"  looking up order {order}")
        return "paid: 20 €" if str(order) in payments.read_text().split() else "not paid"

    with FileStore(folder / "sessions").open("shop", create=True) as session:
        if not session.messages:
            Agent(ScriptedModel([call("pay", order=7)]), tools=[pay, look_up], transcript=session).run(ORDER)
        for message in session.messages:
            if isinstance(message, ToolMessage):
                ran = {True: "yes", False: "no", None: "unknown"}[message.result.executed]
                print(f"  the call of pay: {message.result.status}, ran: {ran}")
        # A provider's model decides the same: the result that it is told says "effect unknown".
        model = ScriptedModel([call("look_up", order=7), say("Order 7 is paid: 20 €.")])
        result = Agent(model, tools=[pay, look_up], transcript=session).run()
        print(f"  {result.text}")


def main() -> None:
    """Both starts, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        for start in ("first", "second"):
            print(f"{start} start:", flush=True)
            done = subprocess.run([sys.executable, __file__, folder], check=False)
            if done.returncode == -signal.SIGKILL:
                print("  (killed)")
        paid = Path(folder, "payments").read_text().split()
        print(f"payments made: {len(paid)}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        shop(Path(sys.argv[1]))
    else:
        main()
