"""The tool behind the command and the public API: its floors are folders at the top of the repository, linked here.

So all that is installed lies under `layerwise`. Texts name modules from their floor on: `backends.jobs` for
`layerwise._tool.backends.jobs`.
"""

VERSION = "0.1.0"
