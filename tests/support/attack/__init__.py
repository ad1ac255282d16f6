"""An attack on Layerwise that follows from a seed: is anything false, lost, left behind, or a traceback?

    python -m tests.support.attack --seed 1 --minutes 10 [--count N] [--only KIND,…] [--together 4] [--out FILE]
    python -m tests.support.attack --seed 1 --attempt 417          # this one attempt again, with what was said

What an attempt does follows from the seed and its number alone: its kind, its command line, its damage, and its moment
as a part of the time that the undisturbed command takes or as a number of journal lines. What a kill then hits is
real time, so an attempt may have to be made a few times until it shows again what it found.

Every attempt has a folder, a workspace and a TMPDIR of its own. What it is held against is what the same command line
does undisturbed, and what the harness knows of the models and files because it made them (docs/attacks.md).
"""
