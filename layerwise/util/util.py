"""All helpers at the path that Polygraphy has them at."""

from layerwise.util.files import (
    LockFile,
    NamedTemporaryFile,
    add_file_suffix,
    find_in_dirs,
    get_file_size,
    is_file_like,
    load_file,
    makedirs,
    sanitize_filename,
    save_file,
    warn_if_wrong_mode,
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
from layerwise.util.queues import (
    PIPE_MAX_SEND_BYTES,
    Compressed,
    compress,
    decompress,
    is_compressed,
    receive_on_queue,
    send_on_queue,
    try_receive_on_queue,
    try_send_on_queue,
)
from layerwise.util.shapes import (
    is_dimension_dynamic,
    is_empty_shape,
    is_shape_dynamic,
    is_valid_shape_override,
    num_dynamic_dimensions,
    override_dynamic_shape,
    try_match_shape,
    volume,
)
from layerwise.util.text import apply_repr, handle_special_repr, indent_block, make_repr, str_from_layer

__all__ = [
    "PIPE_MAX_SEND_BYTES", "Compressed", "LockFile", "NamedTemporaryFile", "TempAttrChange", "add_file_suffix",
    "apply_repr", "check_called_by", "check_sequence_contains", "compress", "contains_wildcard", "decompress",
    "default", "find_in_dirs", "find_str_in_iterable", "get_file_size", "getattr_nested", "handle_special_repr",
    "indent_block", "invert_dict", "invoke_if_callable", "is_compressed", "is_dimension_dynamic", "is_empty_shape",
    "is_file_like", "is_inf", "is_nan", "is_sequence", "is_shape_dynamic", "is_valid_shape_override", "load_file",
    "make_repr", "makedirs", "match_keys", "num_dynamic_dimensions", "override_dynamic_shape", "receive_on_queue",
    "sanitize_filename", "save_file", "send_on_queue", "str_from_layer", "try_getattr", "try_match_shape",
    "try_receive_on_queue", "try_send_on_queue", "unique_list", "unpack_args", "value_or_from_dict", "volume",
    "warn_if_wrong_mode",
]  # fmt: skip
