"""The Run screen: a form that becomes a comparison, its cost and its command line."""

from functools import partial

from textual import on
from textual.app import ComposeResult

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.places import absolute_path, user_path
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.run import RunController
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.controllers.yank import Copy
from layerwise._tool.tui.presenters.bars import candidates_line
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.run_form import (
    BELOW,
    command_lines,
    cost_line,
    field_line,
    input_lines,
    preset_lines,
    problem_lines,
)
from layerwise._tool.tui.presenters.text import Line, wrap_runs
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.files import complete_path
from layerwise._tool.tui.state.run_fields import Field
from layerwise._tool.tui.state.run_form import PRESETS, RunForm, add_side, drop_side, put
from layerwise._tool.tui.state.run_inputs import PREFIX
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.widgets.following import follow, run_latest
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import LinesView
from layerwise._tool.tui.widgets.virtual_list import LiveRows, VirtualList

_FIELD = "run.field"
"""Where the session keeps which field the cursor is on."""


class RunScreen(Page, scope="run"):
    """One list of fields; enter edits the one under the cursor, space and h, l choose."""

    DEFAULT_CSS = f"""
    RunScreen #run-edit {{ display: none; }}
    RunScreen.editing #run-edit {{ display: block; }}
    RunScreen #run-below {{ height: {BELOW}; }}
    """

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self._control = RunController(state, controllers.warm)
        self._fields = self._control.fields()
        self._names = Names(state.glyphs)
        rows = LiveRows(lambda: len(self._fields), self._line)
        self.main_list = VirtualList(rows, glyphs=state.glyphs, id="run-fields", names=self._names)
        self._before: RunForm | None = None
        self._left = state.session.forms.get(_FIELD)

    def _line(self, i: int, cells: int) -> Line:
        control = self._control
        problems, names = control.checked.problems, self._names
        return field_line(control.form, self._fields[i], problems, cells, names, self.state.glyphs)

    def compose(self) -> ComposeResult:
        yield self.main_list
        yield LineInput("", id="run-edit")
        yield LinesView(id="run-below")

    def on_mount(self) -> None:
        follow(self, self.session.on_marks, self._marks_changed)
        follow(self, self.session.on_index, self._marks_changed)
        self._changed()

    def main_widget(self) -> VirtualList | LineInput:
        return self.query_one("#run-edit", LineInput) if self.has_class("editing") else self.main_list

    def shown_again(self) -> None:
        self._marks_changed()

    def _marks_changed(self) -> None:
        if self.is_mounted:
            self._control.check()
            self._changed()

    # ── drawing ──

    def _changed(self) -> None:
        self._show_fields()
        run_latest(self, "cost", self._find_cost, Waits.ROWS)

    def _show_fields(self) -> None:
        here = self._field.key
        self._fields = self._control.fields()
        keys = [field.key for field in self._fields]
        if self._left in keys:
            here, self._left = self._left, None
        if here in keys:  # others may have come before it
            self.main_list.move_to(keys.index(here))
        self.main_list.sync()
        self.paint()

    async def _find_cost(self) -> None:
        await self._control.find_cost()
        self.paint()
        if await self._control.find_plan():
            await self._control.find_cost()
            self._show_fields()
        self._left = None  # all fields are there

    def paint(self) -> None:
        control, cells = self._control, max(20, self.size.width - 2)
        sides = len(control.form.sides)
        on_input = self._field.key.startswith(PREFIX) and self._field.hint
        lines = input_lines(self._field, cells) if on_input else []
        if control.plan_problem:
            lines += wrap_runs([(f"inputs: {shown(control.plan_problem, 300)}", "warn")], cells, 2)
        if control.checked.spec is not None:
            iterations = control.checked.spec.feeds.iterations or 1
            lines += [cost_line(control.cost, sides, iterations), *command_lines(control.command(), cells)]
        else:
            problems, room = control.checked.problems, BELOW - len(lines)
            lines += problem_lines(problems, self._fields, self._field.key, (cells, room), self.state.glyphs)
        self.query_one("#run-below", LinesView).set_lines([[(" ", ""), *line] for line in lines])

    @on(VirtualList.Highlighted, "#run-fields")
    def _moved(self) -> None:
        if self._left is None:
            self.session.remember(_FIELD, form=self._field.key)
        self.paint()

    # ── changing a field ──

    @property
    def _field(self) -> Field:
        return self._fields[min(self.main_list.cursor, len(self._fields) - 1)]

    def _take(self, form: RunForm) -> None:
        self._control.change(form)
        self._changed()

    @on(VirtualList.Selected, "#run-fields")
    def _edit(self) -> None:
        field = self._field
        if field.key == "preset":
            self.choose_preset()
        elif field.options:
            choices = [Choice([(option, "")], option) for option in field.options]
            self.choose(field.label, choices, self._chosen)
        else:
            self._before = self._control.form
            edit = self.query_one("#run-edit", LineInput)
            edit.prompt = f" {field.label}: "
            edit.complete = complete_path if field.is_path else None
            edit.set_value(field.text(self._control.form))
            self._show_hint(edit)
            self.add_class("editing")
            edit.focus()

    def _show_hint(self, edit: LineInput) -> None:
        problem = self._control.checked.problems.get(self._field.key, "")
        offers = complete_path(edit.value) if self._field.is_path and edit.value else []
        if offers and offers != [edit.value]:
            edit.set_tail(candidates_line(offers))
        else:
            edit.set_tail([(problem, "bad")] if problem else [(self._field.hint, "dim")])

    def _chosen(self, option: str) -> None:
        self._take(put(self._control.form, self._field.key, option))

    @on(LineInput.Changed, "#run-edit")
    def _typed(self, event: LineInput.Changed) -> None:
        self._take(put(self._control.form, self._field.key, event.value))
        self._show_hint(event.input)

    @on(LineInput.Submitted, "#run-edit")
    def _edited(self) -> None:
        self.remove_class("editing")
        self.main_list.focus()

    @on(LineInput.Cancelled, "#run-edit")
    def _not_edited(self) -> None:
        if self._before is not None:
            self._take(self._before)
        self._edited()

    @command("run.next", "next choice of the field", keys="space,l,right", footer="change")
    def next_option(self) -> None:
        self._cycle(1)

    @command("run.previous", "choice before it", keys="h,left")
    def previous_option(self) -> None:
        self._cycle(-1)

    def _cycle(self, step: int) -> None:
        field, form = self._field, self._control.form
        if field.key == "preset":
            names = [found.name for found in PRESETS]
            at = names.index(form.preset) if form.preset else -step
            self._use_preset(names[(at + step) % len(names)])
        elif field.options:
            at = field.options.index(field.text(form))
            self._take(put(form, field.key, field.options[(at + step) % len(field.options)]))
        else:
            self._edit()

    # ── commands ──

    @command("run.start", "start the comparison", keys="r", footer="start", line="start")
    def start(self) -> None:
        spec = self._control.checked.spec
        if spec is None:
            self.state.say("not yet: " + next(iter(self._control.checked.problems.values())), "bad")
            return
        run_latest(self, "start", partial(self._start, spec), Waits.DEED)

    async def _start(self, spec: CompareSpec) -> None:
        with self.state.telling():
            job = await self._control.start(spec)
            self.state.say(f"job {job} started; it goes on if you leave", job=job)
            self.open("errors")

    @command("run.presets", "ten ready comparisons", keys="ctrl+t", footer="presets", line="presets")
    def choose_preset(self) -> None:
        pairs = zip(preset_lines(), PRESETS, strict=True)
        choices = [Choice(line, found.name) for line, found in pairs]
        self.choose("Presets", choices, self._use_preset)

    def _use_preset(self, name: str) -> None:
        self._control.use_preset(name)
        self._changed()

    @command("run.add", "add a side", keys="a", footer="add side")
    def add_side(self) -> None:
        self._take(add_side(self._control.form))

    @command("run.drop", "remove the side under the cursor", keys="X", footer="drop side")
    def drop_side(self) -> None:
        key = self._field.key
        if key.startswith("side."):
            self._take(drop_side(self._control.form, int(key.split(".")[1])))
        else:
            self.state.say("put the cursor on a side first")

    @command("run.yank", "copy the equivalent command line", keys="y", footer="yank")
    def yank(self) -> None:
        words = self._control.command()
        if words:
            self.post_message(self.Yank(Copy("", "command", tuple(words))))
        else:
            self.state.say("there is no command line yet: the form is not complete", "warn")

    @command("run.script", "write an equivalent Python script", keys="W", means="write", line="script FILE")
    def write_script(self, name: str = "") -> None:
        from layerwise._tool.tui.cli.script.generate import script, write_script

        spec = self._control.checked.spec
        if spec is None:
            self.state.say("there is no script yet: the form is not complete", "warn")
            return
        path = user_path(name or "layerwise_run.py")
        try:
            write_script(script(spec), str(path))
            self.state.say(f"{absolute_path(path)} written", "good")
        except (OSError, LayerwiseError) as error:
            self.state.say(f"{path}: {error}", "bad")
