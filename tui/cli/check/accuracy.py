"""`layerwise check accuracy`: saved accuracy results against other thresholds, without running anything."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.compare.table.report_lines import label, name, rule
from layerwise._tool.tui.cli.json_output import print_json
from layerwise._tool.tui.cli.options.compare import COMPARE_NAMES, THRESHOLDS, metric_names
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.report import REPORT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.reports import reporter_of
from layerwise._tool.tui.cli.request.to_spec import tolerance
from layerwise._tool.tui.cli.submit import say_conclusion

if TYPE_CHECKING:
    from layerwise._tool.backends.results.accuracy import AccuracyResult, AccuracyResults, Result, SimpleResult
    from layerwise._tool.debugtools.compare.spec import ToleranceSpec

_ASKING = ("no_shape_check", "fail_fast", "save_heatmaps", "save_error_metrics_plot", "show_heatmaps",
           "show_error_metrics_plot")  # options that ask for a new verdict of simple  # fmt: skip
_NONE = "no metric"  # of a result without outputs


def fill_accuracy(parser: Parser) -> None:
    parser.add_argument("path", help="written by `layerwise run --save-accuracy-results`, or by Polygraphy")
    group = parser.add_argument_group("Comparison")
    group.add_argument(
        "--compare",
        "--compare-func",
        nargs="+",
        action="extend",
        choices=COMPARE_NAMES,
        help="check these metrics alone; simple where a tolerance is given, and else all as they were saved",
    )
    group.add_argument("--check-average", action="store_true", help="check the averages over the iterations")
    group.add_argument("--compare-func-script", metavar="FILE[:FUNCTION]",
                       help="what judged: its saved verdicts stand")  # fmt: skip
    group.add_argument("--fail-fast", action="store_true", help="tell of the first metric that fails, and of no more")
    group.add_argument("--no-shape-check", action="store_true",
                       help="accepted; outputs of other shapes failed when they were compared")  # fmt: skip
    group.add_argument("--save-accuracy-results", metavar="PATH", help="save the results with the new thresholds")
    parser.own(group, "--json", action="store_true", help="print one JSON document instead of the report")
    REPORT.add(parser, group)
    add(parser, THRESHOLDS)


def run_accuracy(args: Namespace, log: Log) -> int:
    """Check the file; 0 if all passes, 1 if not."""
    from layerwise._tool.backends.results.io import load_accuracy

    saved = load_accuracy(args.path)
    metrics = metric_names(args.compare)
    present = {_metric(result) for result in saved.results} - {_NONE}
    missing = [metric for metric in metrics if metric not in present] if args.compare and present else []
    if missing:
        there = shown(", ".join(sorted(present)), 200)
        raise UsageError(f"{shown(args.path)} holds no results of {', '.join(missing)}; it has: {there}")
    rules, aggregation = tolerance(args), "average" if args.check_average else "per_sample"
    if args.compare_func_script:
        _look_up(args.compare_func_script)
    elif args.compare or rules != type(rules)() or any(getattr(args, name) for name in _ASKING):
        for result in saved.results:
            if _metric(result) not in metrics:
                log.info(f"Ignoring saved comparison: no threshold of {label(_metric(result))} was requested.")
        saved = replace(saved, results=[result for result in saved.results if _metric(result) in metrics])
        saved = _reevaluated(saved, metrics, rules)
    checked = replace(saved, results=[replace(result, aggregation=aggregation) for result in saved.results])
    if args.save_accuracy_results:
        checked.save(args.save_accuracy_results)
    gaps = list(dict.fromkeys(text for result in checked.results for text in result.gaps()))
    code = _tell(checked, gaps, args, log)
    if reporter := reporter_of(args):
        from layerwise._tool.tui.cli.check.accuracy_report import sections

        told = conclusion(checked, gaps)
        return reporter.sections("accuracy", sections(checked, gaps), code, conclusion=told, facts={"file": args.path})
    return code


def _tell(checked: "AccuracyResults", gaps: Sequence[str], args: Namespace, log: Log) -> int:
    """Print the verdicts; the exit code."""
    if args.json:
        told: dict[str, object] = {"nothing_compared": checked.bare(), "not_compared": gaps}
        told["conclusion"] = conclusion(checked, gaps)
        print_json({"passed": checked.passed, "results": [_as_dict(result) for result in checked.results], **told})
        return 0 if checked.passed else 1
    first = next((result for result in checked.results if not result.passed), None)
    for result in [first] if args.fail_fast and first is not None else checked.results:
        log.info(f"Metric: {label(_metric(result))}")
        for ok, text in _summary(result):
            log.verdict(ok, text)
    for text in gaps:
        log.warning(text)
    for text in checked.bare():
        log.error(text)
    ok = checked.passed
    verdict = "passed" if ok else "did not pass"
    log.verdict(ok, f"{'PASSED' if ok else 'FAILED'} | Accuracy results {verdict} the requested thresholds.")
    say_conclusion(conclusion(checked, gaps), log, passed=ok)
    return 0 if ok else 1


def conclusion(checked: "AccuracyResults", gaps: Sequence[str]) -> str:
    """The last sentence: what was found, how sure that is, and what to do next."""
    if bare := checked.bare():
        return f"{bare[0].removesuffix('.')}: run the comparison again."
    bad = [_metric(result) for result in checked.results if not result.passed]
    count, left = len(checked.results), f" {len(gaps)} tensors or iterations were not compared." if gaps else ""
    if not bad:
        results = f"Within the thresholds: {counted(count, 'saved result')}"
        return f"{results}. Nothing was run: they are as good as the inputs they were made with.{left}"
    these = f"Beyond the thresholds: {', '.join(map(label, bad))}, of {counted(count, 'saved result')}."
    return f"{these} `run --mark-all` shows where it begins.{left}"


def _metric(result: "AccuracyResult") -> str:
    """The metric that a result is of."""
    from layerwise._tool.backends.results.accuracy import MetricResult, SimpleResult

    for iterations in result.pairs.values():
        for outputs in iterations:
            for found in outputs.values():
                if isinstance(found, MetricResult):
                    return found.threshold.metric.name
                if isinstance(found, SimpleResult):
                    return "simple"
    return "indices" if any(map(any, result.pairs.values())) else _NONE


def _look_up(script: str) -> None:
    """UsageError if there is no such function."""
    from layerwise._tool.backends.scripts import load_function
    from layerwise._tool.tui.cli.values import parse_script

    path, function = parse_script(script, "compare_outputs")
    load_function(Path(path), function)


def _reevaluated(saved: "AccuracyResults", metrics: Sequence[str], rules: "ToleranceSpec") -> "AccuracyResults":
    results = []
    for result in saved.results:
        again = _metric(result) in metrics
        pairs = {
            pair: [
                {output: _anew(output, found, rules) if again else found for output, found in outputs.items()}
                for outputs in iterations
            ]
            for pair, iterations in result.pairs.items()
        }
        results.append(replace(result, pairs=pairs))
    return replace(saved, results=results)


def _anew(output: str, found: "Result", rules: "ToleranceSpec") -> "Result":
    """`found` against the thresholds of `rules`; a bare verdict (other shapes, indices) has nothing to check anew."""
    from layerwise._tool.backends.results.accuracy import MetricResult, MetricThreshold, SimpleResult

    if isinstance(found, MetricResult):
        metric = found.threshold.metric
        field = {"cosine_similarity": "cosine", "perceptual_metrics": "lpips"}.get(metric.name, metric.name)
        limit = rule(getattr(rules, field), output, metric.default)
        return replace(found, threshold=MetricThreshold(metric, limit))
    return _simple(output, found, rules) if isinstance(found, SimpleResult) else found


def _simple(output: str, found: "SimpleResult", rules: "ToleranceSpec") -> "SimpleResult":
    from layerwise._tool.backends.results.accuracy import SimpleThreshold

    stat = rule(rules.stat, output, "elemwise")
    new = SimpleThreshold(stat, rule(rules.atol, output, 1e-5), rule(rules.rtol, output, 1e-5))
    stored = _elemwise(output, found, new) if stat == "elemwise" else None
    return replace(found, threshold=new, stored=stored)


def _elemwise(output: str, found: "SimpleResult", new: object) -> bool:
    """What the saved statistics still tell of an element-wise check. UsageError where they do not tell."""
    from layerwise._tool.backends.results.accuracy import SimpleThreshold

    assert isinstance(new, SimpleThreshold)
    old = found.threshold
    largest = found.values.get("max_absdiff"), found.values.get("max_reldiff")
    if any(value is not None and value <= limit for value, limit in zip(largest, (new.atol, new.rtol), strict=True)):
        return True
    elemwise = old.stat == "elemwise" and found.stored is not None
    if elemwise and (old.atol, old.rtol) == (new.atol, new.rtol):
        return bool(found.stored)
    if elemwise and not found.stored and new.atol <= old.atol and new.rtol <= old.rtol:
        return False
    raise UsageError(
        f"output '{name(output)}': an element-wise check at these tolerances cannot be told from saved statistics. "
        "Choose --check-error-stat max, mean or median, or compare saved outputs again (run --load-outputs A B)."
    )


def _summary(result: "AccuracyResult") -> Iterator[tuple[bool, str]]:
    from layerwise._tool.backends.results.accuracy import passed

    for pair in result.pairs:
        head = f"Accuracy Summary | {name(pair[0])} vs. {name(pair[1])} | "
        if result.aggregation == "average":
            averages = result.average(pair)
            good = sum(map(passed, averages.values()))
            yield 0 < good == len(averages), f"{head}Passed: {good}/{len(averages)} outputs"
            for output, average in averages.items():
                yield passed(average), f"    {name(output)} | {'PASSED' if passed(average) else 'FAILED'}"
        else:
            matched, _, total = result.stats(pair)
            matched = matched if any(result.pairs[pair]) else 0
            rate = 100 * matched / total if total else 0.0
            yield 0 < matched == total, f"{head}Passed: {matched}/{total} iterations | Pass Rate: {rate:.2f}%"


def _as_dict(result: "AccuracyResult") -> dict[str, object]:
    from layerwise._tool.backends.results.accuracy import passed

    pairs = [
        {
            "runners": list(pair),
            "iterations": [{out: passed(found) for out, found in outputs.items()} for outputs in iterations],
        }
        for pair, iterations in result.pairs.items()
    ]
    return {
        "metric": _metric(result),
        "aggregation": result.aggregation,
        "passed": result.passed,
        "pairs": pairs,
    }
