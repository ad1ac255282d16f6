"""Running runners on feed dicts, and saving what goes in and comes out."""

import contextlib
import copy
import multiprocessing
import os
import queue
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.limits.forked import keep_what_is_there, nothing_collected
from layerwise._tool.backends.text import shown
from layerwise.backend.base import BaseRunner
from layerwise.common import TensorMetadata
from layerwise.comparator.data_loader import DataLoader
from layerwise.comparator.feeding import DataLoaderCache, check_feed_dict, coerce_feed_dict
from layerwise.comparator.struct import IterationResult, RunResults
from layerwise.json.iterations import ITERATION_FILE_INDEX_WIDTH, IterationWriter, is_single_file
from layerwise.logger import G_LOGGER, LogMode
from layerwise.util import array, try_receive_on_queue, try_send_on_queue


class Saving:
    """Where inputs and outputs go, if anywhere."""

    def __init__(self, inputs: str | None, outputs: str | None, blobs: str | None) -> None:
        self.inputs, self.outputs, self.blobs = inputs, outputs, blobs

    def whole(self, feeds: Sequence[Any], results: RunResults) -> None:
        """Write all of it."""
        with IterationWriter(self.inputs, description="inference input data") as writer:
            for feed in feeds if self.inputs is not None else ():
                writer.append(feed)
        if self.blobs is not None:
            save_blobs(self.blobs, feeds)
        if self.outputs is not None and is_single_file(self.outputs):
            results.save(self.outputs)
        elif self.outputs is not None:
            with IterationWriter(self.outputs, description="inference results") as writer:
                for single in results.split():
                    writer.append(single)


def save_blobs(folder: str, feeds: Sequence[Mapping[str, Any]], first: int = 0) -> None:
    """Write the raw bytes of inputs, a folder an iteration (numbered from `first`), a file each; all of it or nothing.

    PolygraphyException for a name of a file elsewhere, and for a folder that is a file.
    """
    if Path(folder).exists() and not Path(folder).is_dir():
        G_LOGGER.critical(f"Cannot save raw inputs to '{folder}': it is a file, not a folder")
    Path(folder).parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(Path(folder), merge=True) as new:
        for index, feed in enumerate(feeds, first):
            place = (new / f"{index:0{ITERATION_FILE_INDEX_WIDTH}d}").resolve()
            place.mkdir()
            for name, value in feed.items():
                target = (place / f"{name}.bin").resolve()
                if not target.is_relative_to(place):
                    G_LOGGER.critical(f"input '{shown(name, 80)}' names a place outside {folder}")
                target.parent.mkdir(parents=True, exist_ok=True)
                np.asarray(array.to_numpy(value)).tofile(target)


def one_after_the_other(
    runners: Sequence[BaseRunner], loader: Any, warm_up: int, wait: tuple[float, float | None] | None, saving: Saving
) -> RunResults:
    """Run each runner on all inputs. wait: in processes of their own, seconds between looks at one and until it ends
    by itself."""
    if not runners:
        G_LOGGER.warning("No runners were provided to Comparator.run(). Inference will not be run.")
    cache, results = DataLoaderCache(DataLoader() if loader is None else loader), RunResults()
    for runner in runners:
        G_LOGGER.start(f"{runner.name:35} | Activating and starting inference")
        if wait is None:
            results.append((runner.name, _iterations(runner, cache, warm_up)))
        else:
            iterations, cache = _elsewhere(runner, cache, warm_up, *wait)
            results.append((runner.name, iterations))
    if runners:
        saving.whole(cache.cache, results)
    return results


def together(runners: Sequence[BaseRunner], loader: Any, saving: Saving) -> Iterator[RunResults]:
    """All runners at once, iteration by iteration."""
    if not runners:
        G_LOGGER.warning("No runners were provided to Comparator.run(streaming=True). Inference will not be run.")
        return
    loader = DataLoader() if loader is None else loader
    with ExitStack() as stack:
        active = [_activated(runner, stack) for runner in runners]
        metadata = [runner.get_input_metadata(use_numpy_dtypes=False) for runner in active]
        with contextlib.suppress(AttributeError):
            loader.input_metadata = metadata[0]
        inputs = IterationWriter(saving.inputs, None, True, "inference input data")
        outputs = IterationWriter(saving.outputs, RunResults.concat, True, "inference results")
        try:
            for index, feed in enumerate(loader):
                check_feed_dict(feed)
                _tell(f"Streaming iteration {index}", "Input(s)", feed)
                inputs.append(feed)
                if saving.blobs is not None:
                    save_blobs(saving.blobs, [feed], index)
                pairs = zip(active, metadata, strict=True)
                single = RunResults((r.name, [_infer(r, coerce_feed_dict(feed, known))]) for r, known in pairs)
                outputs.append(single)
                yield single
        finally:
            inputs.flush()
            outputs.flush()


def _activated(runner: BaseRunner, stack: ExitStack) -> BaseRunner:
    G_LOGGER.start(f"{runner.name:35} | Activating and starting inference")
    return stack.enter_context(runner)


def _iterations(runner: BaseRunner, cache: DataLoaderCache, warm_up: int) -> list[IterationResult]:
    with runner:
        cache.set_input_metadata(runner.get_input_metadata(use_numpy_dtypes=False))
        if warm_up and len(cache):
            feed = cache[0]
            for _ in range(warm_up):
                runner.infer(feed)
        elif warm_up:
            G_LOGGER.warning(f"{warm_up} warm-up run(s) were requested, but data loader did not supply any data.")
        found = []
        for feed in (cache[index] for index in range(len(cache))):
            _tell(f"{runner.name:35}", "Input(s)", feed)
            found.append(_infer(runner, feed))
    took = 1000 * sum(each.runtime or 0 for each in found)
    G_LOGGER.finish(
        f"{runner.name:35} | Completed {len(found)} iteration(s) in {took:.4g} ms | "
        f"Average inference time: {took / max(1, len(found)):.4g} ms."
    )
    return found


def _tell(head: str, what: str, arrays: Mapping[str, Any]) -> None:
    """Names, types and shapes of what goes in or comes out, each once."""
    if G_LOGGER.shows(G_LOGGER.INFO, "comparator"):
        text = f"{head}\n---- Inference {what} ----\n{TensorMetadata.from_feed_dict(arrays)}"
        G_LOGGER.info(text, LogMode.ONCE)


def _infer(runner: BaseRunner, feed: Mapping[str, Any]) -> IterationResult:
    outputs = runner.infer(feed_dict=feed)
    _tell(f"{runner.name:35}", "Output(s)", outputs)
    return IterationResult(copy.deepcopy(outputs), runner.last_inference_time(), runner.name)


def _elsewhere(
    runner: BaseRunner, cache: DataLoaderCache, warm_up: int, polling: float, timeout: float | None
) -> tuple[list[IterationResult], DataLoaderCache]:
    """Run in a process of its own. PolygraphyException if it ends without results."""
    context = multiprocessing.get_context("fork")
    answers: Any = context.Queue()
    process = context.Process(target=_answer, args=(answers, runner, cache, warm_up))
    with nothing_collected():
        process.start()
    found = None
    try:
        while found is None and (process.is_alive() or not answers.empty()):
            with contextlib.suppress(queue.Empty):
                found = answers.get(timeout=polling / 2)
        if not isinstance(found, list):
            G_LOGGER.critical(f"{runner.name:35} | Terminated prematurely{f': {found}' if found else ''}")
        filled = try_receive_on_queue(answers, timeout=polling)
        process.join(timeout)
    finally:
        process.terminate()
    if filled is None:
        G_LOGGER.critical("The inputs cannot be sent between processes: leave use_subprocess out")
    return found, filled


def _answer(answers: Any, runner: BaseRunner, cache: DataLoaderCache, warm_up: int) -> None:
    keep_what_is_there()
    try:
        found: Any = _iterations(runner, cache, warm_up)
    except Exception as error:
        found = shown(f"{type(error).__name__}: {error}", 1000)
    try_send_on_queue(answers, found)
    try_send_on_queue(answers, cache)
    answers.close()
    answers.join_thread()
    os._exit(0)
