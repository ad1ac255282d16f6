"""The interfaces that a user derives from: what their base methods do."""

from typing import Any

from ._classes import behaves

_KINDS = ("", "Entropy", "MinMax", "Legacy")


@behaves("IInt8EntropyCalibrator2", *(f"IInt8{kind}Calibrator" for kind in _KINDS))
class _Calibrator:
    def get_batch_size(self) -> int:
        return 1

    def read_calibration_cache(self) -> Any:
        return None

    def write_calibration_cache(self, cache: Any) -> None:
        """The base keeps nothing."""

    def get_algorithm(self) -> Any:
        from ._arguments import CLASSES

        names = [base.__name__ for base in type(self).__mro__]
        members = {
            "MinMaxCalibrator": "MINMAX_CALIBRATION",
            "EntropyCalibrator2": "ENTROPY_CALIBRATION_2",
            "LegacyCalibrator": "LEGACY_CALIBRATION",
        }
        for ending, member in members.items():
            if f"IInt8{ending}" in names:
                return getattr(CLASSES["CalibrationAlgoType"], member)
        return CLASSES["CalibrationAlgoType"].ENTROPY_CALIBRATION
