"""Two and five simultaneous faults: is each found, in one search, and named by `locate`?"""

from support.faults.corpus import Planted
from support.faults.files import Files
from support.faults.ours import run_action, two_models

from benchmarks.faults.reducing import reduce_one, summary
from benchmarks.faults.tables import Options, Table, corpora, share, table, work_folder
from layerwise._tool.debugtools.locate.spec import LocateSpec

FAULTS = (2, 5)


def main(options: Options) -> bool:
    """Measure and print; whether all are found in 95 % of the models."""
    good = True
    with table(options) as rows:
        for corpus in corpora(options):
            with work_folder() as folder:
                for number in FAULTS:
                    for planted in corpus.several(options.count, number):
                        reduce_one(corpus.clean, planted, folder, rows)
                        _locate(
                            planted, Files(*(folder / n for n in ("suspect.onnx", "good.onnx", "inputs.json"))), rows
                        )
        for number in FAULTS:
            print(f"\n{number} faults at once")
            chosen = [row for row in rows.rows if len(row["faults"]) == number]
            good = summary(chosen) and good
            first, named = share(chosen, "first"), share(chosen, "named")
            print(f"locate: all among the first {number} {first}, all among the suspects {named}")
    return good


def _locate(planted: Planted, files: Files, rows: Table) -> None:
    suspects = run_action("locate", LocateSpec(compare=two_models(files), top=50), "suspects").result["suspects"]
    first = {row["node"] for row in suspects[: len(planted.faults)]}
    everything = {row["node"] for row in suspects}
    rows.rows[-1]["first"] = all(first.intersection(fault.nodes) for fault in planted.faults)
    rows.rows[-1]["named"] = all(everything.intersection(fault.nodes) for fault in planted.faults)
