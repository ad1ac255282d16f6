# ruff: noqa: E501 (a row of a table is a line)
"""Classes of results do the same in both packages: tables of scripts, of which the last line is compared."""

import pytest
from support.both_packages import outcome

ACCURACY = """
def results(values, threshold=1.0):
    return [{"y": L2Result(v, L2Threshold(threshold))} for v in values]
one = AccuracyResult({("a", "b"): results([0.5, 2.0, 0.2]), ("b", "c"): results([0.1])})
simple = AccuracyResult({("a", "b"): [{"y": OutputCompareResult(*[n] * 8, thresholds=SimpleThreshold("max", 1, 1), passed=False)} for n in (0, 4)]})
"""
RESULTS = {
    "stats": "one.stats(), one.stats(('b', 'c')), one.percentage(), bool(one), one.output_names()",
    "averages": "[(n, r.metric_values(), bool(r)) for n, r in one.average_results().items()]",
    "described": "one.describe_average(), one.describe_average(('b', 'c'))",
    "average is what counts": "AccuracyResult(one.dct, aggregation='average').__bool__()",
    "again": "bool(one.reevaluate(L2Threshold(3.0))), one.stats()",
    "again by name": "bool(one.reevaluate({'y': L2Threshold(0.3)}, aggregation='average')), one.aggregation",
    "again without": "one.reevaluate({'z': L2Threshold(0.3)})",
    "again other": "one.reevaluate(SnrThreshold(0.3))",
    "again of a verdict": "AccuracyResult({('a', 'b'): [{'y': False}]}).reevaluate(L2Threshold(1.0))",
    "elementwise holds": "bool(simple), bool(simple.reevaluate(SimpleThreshold('max', 5, 5)))",
    "elementwise again": "bool(simple.reevaluate(SimpleThreshold('elemwise', 5, 5)))",
    "averages of a mismatch": "AccuracyResult({('a', 'b'): results([0.5]) + [{'y': False}]}).average_results()",
    "several": "bool(AccuracyResults([one, simple])), AccuracyResults([one, simple]).output_names()",
    "several again": "found = AccuracyResults([simple, one]).reevaluate([L2Threshold(9.0)])\n(len(found), bool(found))",
    "several in order": "[bool(r) for r in AccuracyResults([simple, one]).reevaluate([L2Threshold(9.0), SimpleThreshold('max', 9, 9)])]",
    "several other": "AccuracyResults([one]).reevaluate(SnrThreshold(1.0))",
    "several empty": "AccuracyResults([one]).reevaluate({})",
    "wrong": "AccuracyResults([1]).append(1)",
    "saved": "AccuracyResults.from_json(AccuracyResults([one]).to_json())[0].stats()",
}
RUNS = {
    "index": "r[0][0], len(r), [k for k in r.keys()], 'a' in r, ('b', []) in r, 'x' in r",
    "name": "[i['y'].tolist() for i in r['a']], r['a'][0].runner_name, r['a'][0].runtime",
    "unknown": "r['x']",
    "set": "r['b'] = [IterationResult({'z': np.ones(1)})]\nr['c'] = []\n[(k, len(v)) for k, v in r.items()]",
    "add": "r.add([{'q': np.ones(1)}], runtime=2.0)\n(list(r.keys()), r['custom_runner'][0].runtime)",
    "append": "r.append('text')",
    "extend": "r.extend([('z', [])])\n[len(v) for v in r.values()]",
    "split": "[[(n, len(i)) for n, i in s] for s in r.split()]",
    "concat": "RunResults.concat(r.split()) == RunResults([r[0]])",
    "equal": "r == RunResults.from_json(r.to_json()), r == RunResults()",
    "iteration": "i = r['a'][0]\ni['w'] = np.ones(2)\ni.update({'v': np.zeros(1)})\n(list(i), len(i), 'w' in i, i['v'], [v.shape for v in i.values()])",
    "iteration equal": "r['a'][0] == r['a'][0], r['a'][0] == r['a'][1]",
    "copies": "c = __import__('copy').deepcopy(r)\nc['a'][0]['y'] = np.ones(9)\nr['a'][0]['y'].tolist()",
    "top k": "[v.tolist() for v in Comparator.postprocess(r, TopKPostprocessFunc(2))['a'][0].values()]",
    "top k by name": "[v.tolist() for v in Comparator.postprocess([r, r], PostprocessFunc.top_k({'y': (1, 0)}))[0]['a'][1].values()]",
    "top k of a stream": "[s[0][1][0]['y'].tolist() for s in Comparator.postprocess(r.split(), TopKPostprocessFunc({'': 1}))]",
    "post-processed in place": "Comparator.postprocess(r, lambda i: IterationResult({'n': i['y'] * 2})) is r, list(r['a'][0])",
    "valid": "Comparator.validate(r), Comparator.validate(r, check_inf=True), Comparator.validate([r, r])",
    "invalid": "r['a'][0]['y'] = np.array([1, np.nan])\n(Comparator.validate(r), Comparator.validate(r, check_nan=False))",
    "infinite": "r['a'][0]['y'] = np.array([1, np.inf])\n(Comparator.validate(r), Comparator.validate(r, check_inf=True, check_nan=False))",
    "valid stream": "len(list(Comparator.validate(r.split())))",
    "invalid stream": "r['a'][1]['y'] = np.array([np.nan])\nlist(Comparator.validate(r.split()))",
    "pairs": "Comparator.default_comparisons(RunResults([('a', []), ('b', []), ('c', [])]))",
    "averages": "bool(Comparator.compare_accuracy(RunResults([r[0], ('c', r['a'])]), compare_func=L2CompareFunc(), check_average=True))",
    "averages of elements": "Comparator.compare_accuracy(r, check_average=True)",
    "averages of indices": "Comparator.compare_accuracy(r, compare_func=IndicesCompareFunc(), check_average=True)",
    "averages and fail fast": "Comparator.compare_accuracy(r, compare_func=L2CompareFunc(), check_average=True, fail_fast=True)",
    "fail fast": "s = RunResults([('a', [IterationResult({'y': np.ones(1)})] * 2), ('b', [IterationResult({'y': np.zeros(1)})] * 2)])\nComparator.compare_accuracy(s, fail_fast=True)[0].stats()",
    "chosen pairs": "list(Comparator.compare_accuracy(RunResults([r[0], ('c', r['a']), ('d', r['a'])]), comparisons=[(2, 0)])[0])",
}  # fmt: skip
RUNS_OF = (
    'r = RunResults([("a", [IterationResult({"y": np.array([n, 3, 1])}, 0.5, "a") for n in (2, 5)]), ("b", [])])\n'
)


@pytest.mark.parametrize("name", RESULTS)
def test_accuracy_results_do_the_same(name: str) -> None:
    source = ACCURACY + RESULTS[name]
    assert outcome("layerwise", source) == outcome("polygraphy", source)


@pytest.mark.parametrize("name", RUNS)
def test_run_results_do_the_same(name: str) -> None:
    source = RUNS_OF + RUNS[name]
    assert outcome("layerwise", source) == outcome("polygraphy", source)
