"""The Jobs screen over real jobs: what runs, what crashed, cancel, retry, prune."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bench import Bench, chain_pair, compare_spec, with_bench
from support.jobs import jobs_home

from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.prune import prune
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.tui.controllers.run import compare_job
from layerwise._tool.tui.presenters.jobs import (
    card_lines,
    card_text,
    detail_lines,
    event_lines,
    heading,
    log_lines,
    row_line,
    summary,
)
from layerwise._tool.tui.presenters.text import ASCII, UNICODE, plain, width
from layerwise._tool.tui.state.questions import KNOWN_KEYS, read_question
from layerwise._tool.tui.widgets.lines import DetailPane

__all__ = ["jobs_home"]


def job_view(number: int, state: str, **known: object) -> JobView:
    view = JobView(Path("/w/jobs") / str(number))
    view.state = state
    for key, value in known.items():
        setattr(view, key, value)
    return view


@pytest.mark.parametrize("cells", [66, 78, 116])
@pytest.mark.parametrize("glyphs", [ASCII, UNICODE])
def test_rows_line_up_with_their_heading(cells: int, glyphs: object) -> None:
    progress = {"done": 30, "total": 40, "unit": "tensors", "text": "", "t": 20.0}
    views = [
        job_view(1, "running", progress=progress, created=5.0, started=10.0, gpus=["GPU-1234"]),
        job_view(2, "done", created=5.0, started=10.0, ended=12.5, bytes_on_disk=123456),
        job_view(3, "queued"),
    ]
    for view in views:
        line = row_line(view, "a\x1b[31m very long title " * 9, 30.0, cells, glyphs)  # type: ignore[arg-type]
        assert width(line) == width(heading(cells)) == cells
        assert "\x1b" not in plain(line)
    bad = row_line(job_view(4, "done", result={"passed": False}), "t", 30.0, cells, UNICODE)
    assert width(bad) == cells and ("✗ done, bad ", "bad") in bad
    failed = row_line(job_view(5, "failed"), "run m.onnx --onnx", 30.0, cells, UNICODE)
    assert width(failed) == cells and "run m.onnx --onnx" in plain(failed)
    assert "75%" in plain(row_line(views[0], "t", 30.0, 116, UNICODE))
    assert "3/s" in plain(row_line(views[0], "t", 30.0, 116, UNICODE))


def test_the_title_bar_counts_what_is_alive() -> None:
    progress = {"done": 31, "total": 50, "t": 0.0}
    assert summary([job_view(1, "done")]) == []
    views = [job_view(1, "running", progress=progress), job_view(2, "waiting"), job_view(3, "lost")]
    assert plain(summary(views)) == "2 jobs 62%  1 asks"


def test_what_a_job_was_at_is_told_while_it_is_at_it() -> None:
    known = {"progress": {"done": 1, "total": 1, "text": "at y", "t": 0.0}, "counts": {"plan": 1, "runs": 2}}
    told = ["\n".join(map(plain, detail_lines(job_view(1, state, **known), None, None, 78, UNICODE)))
            for state in ("running", "done")]  # fmt: skip
    assert "1 row in plan, 2 rows in runs, at y\n" in told[0] and "2 rows in runs\n" in told[1]


@pytest.mark.parametrize("cells", [28, 58, 78])
def test_what_a_job_is_and_said_is_whole_in_every_width(cells: int) -> None:
    words = [
        " ".join(f"{what}{number}" for number in range(40)) for what in ("title", "reason", "damage", "left", "log")
    ]
    title, reason, damage, left, log = words
    card = {"kind": "error", "summary": reason, "detail": damage}
    result = {"not_compared": [{"reason": "no value", "tensor": "t", "text": left}]}
    folder = Path("/w/" + "deep/" * 30) / "7"
    view = JobView(folder)
    view.state, view.reason, view.damage, view.card, view.result = "failed", reason, damage, card, result
    spec = JobSpec(action="test", params={}, title=title, source="tui", cwd=str(folder.parent))
    said = [{"type": "log", "text": log, "n": 1, "t": 0.0}, {"type": "warning", "text": left, "n": 2, "t": 0.0}]
    lines = [*detail_lines(view, spec, None, cells, UNICODE), *event_lines(said, cells), *log_lines(log, cells)]
    assert max(map(width, lines)) <= cells
    told = " ".join(" ".join(map(plain, lines)).split())
    assert (
        all(text in told for text in words)
        and told.count(log) == 2
        and told.count(damage) == 2
        and told.count(left) == 2
    )
    assert str(folder) in told.replace(" ", "")


def test_a_card_is_shown_whole_and_harmless() -> None:
    card = {
        "kind": "signal", "summary": "the worker crashed: SIGSEGV", "detail": "Fatal\x1b[2J\nThread 0x1",
        "last_event": {"n": 7, "type": "row"}, "command": "layerwise jobs retry 7",
    }  # fmt: skip
    text = card_text(card, ASCII)
    assert "signal: the worker crashed: SIGSEGV" in text and "last event  a row of the table" in text
    assert "reproduce   layerwise jobs retry 7" in text and "\x1b" not in text
    assert max(map(width, card_lines(card, 40, ASCII))) <= 40


def submit(home: Workspace, action: str, **params: object) -> JobSpec:
    return JobSpec(action=f"test_{action}", params=params, title=f"the {action} job", source="tui", cwd=str(Path.cwd()))


def test_a_running_job_is_followed_cancelled_retried_and_pruned(jobs_home: Workspace) -> None:
    async def story(bench: Bench) -> None:
        client = bench.app.state.client
        job = await client.submit(submit(jobs_home, "rows", n=600, pause=0.05))
        await bench.press("3")
        await bench.see("the rows job", "running", "1 job", "rows in layers")
        await bench.press("K")
        await bench.see(f"Cancel job {job}?")
        await bench.press("n")
        await bench.press("enter")
        await bench.see(f"job {job} has no screen of its own: below is what it said")
        assert isinstance(bench.app.focused, DetailPane)
        await bench.press("tab", "K", "y")
        await bench.see("cancelled")
        kept = (await client.view(job)).counts["layers"]
        await bench.press("r")
        await bench.see("attempt 2", "running")
        await bench.until(lambda: bench.app.state.jobs.views[0].counts["layers"] > kept)
        await bench.press("K", "y")
        await bench.until(lambda: bench.app.state.jobs.views[0].final)
        await bench.press("P")
        await bench.see("Remove which jobs?", "failed, cancelled and lost ones: 1")
        await bench.press("f")
        await bench.see("1 job removed", "no job yet")

    with_bench(None, story)


def test_a_crash_has_its_card_and_the_app_goes_on(jobs_home: Workspace) -> None:
    async def story(bench: Bench) -> None:
        client = bench.app.state.client
        await client.submit(submit(jobs_home, "segfault"))
        await bench.press("3")
        await bench.see("✗ failed", "signal: the worker crashed: SIGSEGV", "last event", "reproduce", seconds=30)
        await bench.see(f"from     {Path.cwd()}"[:70])
        await bench.press("y")
        await bench.see("crash card")
        await bench.press("k")
        path = bench.app.state.workspace.root / "yank.txt"
        await bench.until(path.exists)
        assert "SIGSEGV" in path.read_text()

    with_bench(None, story)


def test_a_question_is_answered_by_its_keys_from_a_list_and_in_words(jobs_home: Workspace) -> None:
    verdict = {"text": "is it good?", "choices": ["good", "bad", "skip", "undo"], "measured": {"max_abs": 0.5}}
    other = {"text": "which\x1b[2J one?", "choices": ["yes", "no", "nothing"]}

    async def story(bench: Bench) -> None:
        client = bench.app.state.client
        job = await client.submit(submit(jobs_home, "ask", questions=[verdict, verdict, other, other, other, "why?"]))
        await bench.press("3")
        await bench.see("1 asks", "it asks: is it good?", "max_abs 0.5", "g good   b bad   s skip   u undo")
        await bench.see("layerwise attach 1", "b bad  s skip  u undo  enter open")
        await bench.press("question_mark")
        await bench.see("answer: good", ":answer good")
        await bench.press("escape")
        for key in "gu":
            asked = bench.app.state.jobs.views[0].question
            await bench.press(key)
            await bench.until(lambda asked=asked: bench.app.state.jobs.views[0].question not in (None, asked))
        await bench.see("which\\x1b[2J one?", "e yes   n no   o nothing")
        await bench.press("n")
        await bench.see("answered no")
        await bench.until(lambda: (bench.app.state.jobs.views[0].question or {}).get("id") == "1.4")
        await bench.press("A")
        await bench.see("Job 1: which")
        await bench.press("o")
        await bench.see("answered nothing")
        await bench.until(lambda: (bench.app.state.jobs.views[0].question or {}).get("id") == "1.5")
        await bench.press("colon", *"answer maybe", "enter")
        await bench.see("answers: yes, no, nothing")
        await bench.press("colon", *"answer ye", "tab", "enter")
        await bench.see("why?", "answers in your own words")
        await bench.press("A", *"it is late", "enter")
        view = await client.wait(job)
        words = ["good", "undo", "no", "nothing", "yes", "it is late"]
        assert view.result == {"answers": [{"answer": word} for word in words]}
        await bench.see("done", "K cancel  r retry")
        assert "g good" not in bench.text
        await bench.press("A")
        await bench.see("this job asks nothing")

    with_bench(None, story)


@given(st.lists(st.text(max_size=8)), st.frozensets(st.sampled_from("abcgsu123")))
def test_every_choice_has_a_key_of_its_own_that_nothing_else_has(words: list[str], taken: frozenset[str]) -> None:
    question = read_question(1, {"id": "1.1", "question": {"text": "?", "choices": words}}, taken)
    assert question is not None
    assert set(question.words) == set(words) - {""}
    assert len(set(question.keys.values())) == len(question.keys) >= min(len(question.words), 20)
    assert all(key not in taken or KNOWN_KEYS.get(word) == key for key, word in question.keys.items())
    if question.words:
        assert all(question.answer(key) in question.words for key in question.keys)
        assert all(question.answer(word) == word for word in question.words)


def test_a_comparison_that_was_started_before_opens_its_table(tmp_path: Path) -> None:
    right, wrong = chain_pair(tmp_path)

    async def before() -> int:
        from layerwise._tool.backends.jobs.client import JobClient

        client = JobClient(Workspace(), ACTIONS)
        job = await client.submit(compare_job(compare_spec(wrong, right)))
        await client.wait(job)
        client.close()
        return job

    job = asyncio.run(before())

    async def story(bench: Bench) -> None:
        await bench.press("3")
        await bench.see("wrong.onnx: onnxruntime", "✓ done")
        await bench.until(lambda: bench.app.state.jobs.index_of(job) >= 0)
        while bench.app.state.jobs.views[bench.app.page.main_widget().cursor].id != job:  # type: ignore[attr-defined]
            await bench.press("j")
        await bench.press("enter")
        await bench.see("[2 Errors]", "done: 40 rows")
        assert bench.app.state.session.compare_job == str(job)
        await bench.press("3", "G", "k")  # the one that read the model is the next
        await bench.see("$ layerwise /")
        await bench.press("enter")
        await bench.see("[1 Graph]")

    with_bench(wrong, story)


def test_what_was_on_view_and_was_pruned_is_forgotten(tmp_path: Path) -> None:
    pair = chain_pair(tmp_path)

    async def story(bench: Bench) -> None:
        state = bench.app.state
        first = await bench.compare(compare_spec(pair[1], pair[0]))
        second = await bench.compare(compare_spec(pair[1], pair[0]))
        prune(state.workspace, [second])
        await bench.until(lambda: state.session.compare_job == str(first))
        await bench.see(f"job {second}, the comparison on view, was removed")
        await bench.press("2")
        await bench.see("done: 40 rows")

    async def again(bench: Bench) -> None:
        assert bench.app.state.session.compare_job is None
        await bench.see("the comparison on view, was removed")

    with_bench(pair[1], story)
    prune(Workspace())
    with_bench(pair[1], again)


def test_keys_that_come_before_the_next_question_are_no_answers_to_the_one_before(jobs_home: Workspace) -> None:
    question = {"text": "is it good?", "choices": ["good", "bad"]}

    async def story(bench: Bench) -> None:
        client = bench.app.state.client
        job = await client.submit(submit(jobs_home, "ask", questions=[question]))
        await bench.press("3")
        await bench.see("it asks: is it good?")
        await bench.press("g", "g", "b")
        assert "was answered good; the next one has not come yet" in bench.text and "answered bad" not in bench.text
        view = await client.wait(job)
        assert view.result == {"answers": [{"answer": "good"}]}
        assert (view.folder / "replies.jsonl").read_text().count("answer") == 1

    with_bench(None, story)
