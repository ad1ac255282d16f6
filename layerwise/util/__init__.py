"""Helpers that scripts use: names and mappings, files, shapes, text; `util.array` for arrays of numpy and torch."""

from layerwise.util import array
from layerwise.util.files import (
    LockFile,
    NamedTemporaryFile,
    add_file_suffix,
    find_in_dirs,
    get_file_size,
    load_file,
    makedirs,
    sanitize_filename,
    save_file,
)
from layerwise.util.matching import (
    TempAttrChange,
    check_called_by,
    check_sequence_contains,
    contains_wildcard,
    default,
    find_str_in_iterable,
    getattr_nested,
    invert_dict,
    invoke_if_callable,
    is_inf,
    is_nan,
    is_sequence,
    match_keys,
    try_getattr,
    unique_list,
    unpack_args,
    value_or_from_dict,
)
from layerwise.util.queues import try_receive_on_queue, try_send_on_queue
from layerwise.util.shapes import (
    is_empty_shape,
    is_shape_dynamic,
    is_valid_shape_override,
    override_dynamic_shape,
    try_match_shape,
    volume,
)
from layerwise.util.text import indent_block, make_repr, str_from_layer

__all__ = [
    "LockFile", "NamedTemporaryFile", "TempAttrChange", "add_file_suffix", "array", "check_called_by",
    "check_sequence_contains", "contains_wildcard", "default", "find_in_dirs", "find_str_in_iterable", "get_file_size",
    "getattr_nested", "indent_block", "invert_dict", "invoke_if_callable", "is_empty_shape", "is_inf", "is_nan",
    "is_sequence", "is_shape_dynamic", "is_valid_shape_override", "load_file", "make_repr", "makedirs", "match_keys",
    "override_dynamic_shape", "sanitize_filename", "save_file", "str_from_layer", "try_getattr", "try_match_shape",
    "try_receive_on_queue", "try_send_on_queue", "unique_list", "unpack_args", "value_or_from_dict", "volume",
]  # fmt: skip
