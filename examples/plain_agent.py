"""An agent in plain Python, with three lines of SDK.

Start `surefoot serve`, run this, and ask: surefoot sql "SELECT agent_name, outcome, tool_calls FROM runs"
"""

from __future__ import annotations

from surefoot.instrumentation import agent_run, init, model_call, record_evaluation, tool

PRICES = {"apple": 0.5, "pear": 0.75}


@tool("look_up_price", effect="read", dependency="price-list")
def look_up_price(fruit: str) -> float:
    return PRICES[fruit]


def answer(question: str) -> str:
    with model_call("my-model", provider="my-provider") as call:
        fruit = question.rsplit(maxsplit=1)[-1].strip("?")  # your model decides what to look up
        call.set_usage(input_tokens=len(question.split()), output_tokens=1)
    return f"A {fruit} costs {look_up_price(fruit):.2f}."


def main() -> None:
    init(service_name="greengrocer")
    for question, expected in (("How much is an apple?", "0.50"), ("How much is a pear?", "0.75")):
        with agent_run("clerk", task_class="price", task_id=question, consequence_class="read_only") as run:
            text = answer(question)
        good = expected in text
        record_evaluation(
            "right_price",
            label="pass" if good else "fail",
            kind="outcome",
            grader_name="price-list",
            grader_kind="executable",
            span_context=run.span_context,
        )
        print(text)


if __name__ == "__main__":
    main()
