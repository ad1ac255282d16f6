"""The flowchart itself, as a table: questions, possible answers, what each leads to. Nothing is measured here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown

END = ""


@dataclass(frozen=True)
class Step:
    """One question. answers: answer -> next step (END: the way ends here); advice: what an answer tells the user."""

    name: str
    title: str
    question: str
    answers: Mapping[str, str]
    advice: Mapping[str, str] = field(default_factory=dict)


_STEPS = (
    Step(
        "original",
        "Reproduce",
        "Do the outputs differ at all, as configured?",
        {"yes": "sanitize", "no": END, "refused": "reduce"},
        {
            "no": "Nothing differs beyond the tolerance. Give inputs that show it, or tighter tolerances.",
            "refused": "One side does not run, so there are no numbers to compare; the words above say why.",
        },
    ),
    Step(
        "sanitize",
        "Sanitise the model",
        "Does it still fail once constants are folded and dead nodes are gone?",
        {"yes": "inputs", "no": END},
        {"no": "The sanitised model does not fail: use it. What was folded away holds the fault."},
    ),
    Step(
        "inputs",
        "Input data",
        "Does it pass with real input data, and fail with made-up data only?",
        {"no": "intermittent", "yes": END},
        {"yes": "The model is sensitive to its input: test it with real data. This is no fault of the backend."},
    ),
    Step(
        "intermittent",
        "Intermittent?",
        "Does the result change from one run or build to the next?",
        {"yes": "repeat", "no": "layerwise"},
    ),
    Step(
        "repeat",
        "Debug an intermittent fault",
        "Was a build or run found that always fails?",
        {"yes": "report", "no": "layerwise"},
        {"no": "No build or run fails reliably: searches below treat it as flaky."},
    ),
    Step(
        "layerwise",
        "Layer by layer",
        "Does it still fail when every tensor is an output?",
        {"yes": "extract", "no": "reduce", "explained": END},
        {
            "explained": "Nothing is wrong: rounding explains every layer and every output. The tolerance asks "
            "for less: `--tolerance auto` judges by rounding.",
            "no": "Marking makes the fault vanish: it sits in what the backend fuses. Reducing goes without marking.",
        },
    ),
    Step(
        "extract",
        "Extract the failing part",
        "Does the first bad layer fail on its own?",
        {"yes": "report", "no": "reduce"},
    ),
    Step(
        "reduce",
        "Reduce",
        "Does a reduced model still fail?",
        {"yes": "report", "no": "check"},
    ),
    Step(
        "check",
        "Double-check",
        "Are tolerance, inputs and the check itself right?",
        {"yes": "report", "no": END},
        {"no": "Mend the check, the tolerance or the inputs, then begin again at the reduction."},
    ),
    Step("report", "Report", "Is the failing case written down?", {"yes": END, "no": END}),
)
STEPS: dict[str, Step] = {step.name: step for step in _STEPS}
FIRST = _STEPS[0].name


def follow(name: str, answer: str) -> str:
    """The step that `answer` leads to. UsageError for an answer that the step does not have."""
    step = STEPS[name]
    if answer not in step.answers:
        raise UsageError(f"{name}: {shown(answer, 40)!r} is no answer; choose {' or '.join(step.answers)}")
    return step.answers[answer]


def check_answers(answers: Mapping[str, str]) -> None:
    """UsageError unless every key is a step and every value one of its answers."""
    for name, answer in answers.items():
        if name not in STEPS:
            raise UsageError(f"{shown(name, 40)!r} is no step of the triage; steps: {', '.join(STEPS)}")
        follow(name, answer)
