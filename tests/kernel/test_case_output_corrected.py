"""Cases of `output=` where an answer does not fit: what is wrong is told to the model, three times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from gotato_py import OutputInvalid, RunFailed, RunStatus, StopReason
from gotato_testkit import call, say, think

from .laws import assert_laws
from .test_case_output import GIVEN, JSON, SUNNY, Weather, ask, final, statuses, wanted


class TestCorrections:
    """What does not fit is told to the model, three times."""

    def test_a_call_that_does_not_fit(self) -> None:
        """A violation is the call's own result: not run, naming what is wrong; nothing else is added."""
        stage = wanted(final(city="Oslo", degrees="warm"), final(**GIVEN))
        assert ask(stage).output == SUNNY
        assert statuses(stage) == ["not_run", "ok"]
        assert "$.degrees" in stage.results[0].text
        assert [line[0] for line in stage.asked[1]] == ["U", "A", "R"]
        assert_laws(stage)

    @pytest.mark.parametrize(
        "text",
        ["It is sunny.", "", '{"city": "Oslo"}', JSON + JSON, "[1]", '{"city": "Oslo", "degrees": NaN}'],
        ids=repr,
    )
    def test_a_text_that_does_not_fit(self, text: str) -> None:
        """Natively, a violation is told in a message of the next request that is not stored."""
        first = say(text) if text else say() + think("Hm.")
        steps = [first, say(JSON)] if text else [call("look"), first, say(JSON)]
        stage = wanted(*steps, native=True)
        assert ask(stage).output == SUNNY
        assert stage.asked[-1][-1].startswith("U Your answer does not fit")
        assert [line for line in stage.history if line[0] == "U"] == ["U do it"]
        assert_laws(stage)

    def test_text_where_a_call_was_asked_for(self) -> None:
        """A model that answers in text is told to call the tool, in a message that is not stored."""
        stage = wanted(say("It is sunny."), say('{"city": "Oslo"}'), final(**GIVEN))
        assert ask(stage).output == SUNNY
        assert [lines[-1] for lines in stage.asked[1:]] == [
            "U Give your final answer by calling the tool final_answer."
        ] * 2
        assert [line[0] for line in stage.history] == ["U", "A", "A", "A", "R"]
        assert_laws(stage)

    def test_text_that_fits_where_a_call_was_asked_for(self) -> None:
        """A model that gives the very JSON as text, in place of the call, is understood at once."""
        stage = wanted(say(JSON))
        assert ask(stage).output == SUNNY
        assert stage.history == ["U do it", f"A {JSON} end_turn"]
        assert_laws(stage)

    @pytest.mark.parametrize("native", [True, False], ids=["native", "final_answer"])
    def test_three_and_no_more(self, native: bool) -> None:
        """The fourth answer that does not fit fails the run; the error does not quote it; `.output` raises it."""
        wrong = say('{"city": "SECRET"}') if native else final(city="SECRET")
        stage = wanted(*[wrong] * 9, native=native)
        result = ask(stage)
        assert (result.status, len(stage.asked)) == (RunStatus.FAILED, 4)
        assert isinstance(result.error, OutputInvalid)
        assert "SECRET" not in str(result.error)
        with pytest.raises(RunFailed) as raised:
            result.output  # noqa: B018  # the property raises
        assert raised.value.code == "output_invalid"
        assert_laws(stage)

    def test_a_correction_is_told_once(self) -> None:
        """A correction goes into one request; what it corrected is in the history."""
        stage = wanted(say("Hm."), call("look"), final(**GIVEN))
        assert ask(stage).output == SUNNY
        told = [[line for line in lines if "final answer by calling" in line] for lines in stage.asked]
        assert [len(each) for each in told] == [0, 1, 0]
        assert_laws(stage)

    def test_silence(self) -> None:
        """Silence after a tool is an answer, and none of that type."""
        stage = wanted(call("look"), say(), final(**GIVEN))
        assert ask(stage).output == SUNNY
        assert stage.asked[2][-1].startswith("U Give your final answer")
        assert_laws(stage)

    @pytest.mark.parametrize("stop", ["max_tokens", "content_filter"])
    @pytest.mark.parametrize("text", ['{"city": "Os', JSON, "21"], ids=["half", "whole", "a number"])
    def test_text_that_was_cut_off(self, stop: str, text: str) -> None:
        """A text that was cut off is no value, though what is left of it may look like one."""
        output: Any = int if text == "21" else Weather
        whole = "212" if text == "21" else JSON
        stage = wanted(say(text, stop_reason=stop), say(whole), native=True)
        result = ask(stage, output=output)
        assert result.output == (212 if text == "21" else SUNNY)
        assert "cut off" in stage.asked[1][-1]
        assert_laws(stage)

    def test_calls_that_were_cut_off(self) -> None:
        """A call in a message that was cut off is not taken, valid as it may look."""
        cut = say("Here: ", stop_reason="max_tokens") + final(**GIVEN)
        stage = wanted(cut, final(city="Bergen", degrees=12))
        assert ask(stage).output == Weather("Bergen", 12)
        assert statuses(stage) == ["not_run", "ok"]
        assert_laws(stage)

    def test_a_constructor_that_refuses(self) -> None:
        """What the type's own constructor refuses is a violation like any other."""

        @dataclass
        class Even:
            """An even number."""

            n: int

            def __post_init__(self) -> None:
                if self.n % 2:
                    raise ValueError(f"{self.n} is odd")

        stage = wanted(final(n=3), final(n=4))
        assert ask(stage, output=Even).output == Even(4)
        assert "3 is odd" in stage.results[0].text
        assert_laws(stage)

    def test_a_pause(self) -> None:
        """A provider's pause is no answer yet."""
        stage = wanted(say("Searching. ", stop_reason=StopReason.PAUSE), say(JSON), native=True)
        assert ask(stage).output == SUNNY
        assert stage.asked[1][-1].startswith("A Searching.")
        assert_laws(stage)
