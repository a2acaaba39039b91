"""Frames as files: CSV that a spreadsheet opens without harm, and Parquet, whose columns have one type each."""

import json
from pathlib import Path

import pandas as pd

from workbench.core.places import whole_file


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame in the format that its file's name ends in, csv or parquet."""
    with whole_file(path) as part:
        if path.suffix == ".csv":
            for_a_sheet(frame).to_csv(part, index=False)
        else:
            _of_one_type(frame).to_parquet(part, index=False)


def with_json(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Write the dicts of a column as JSON."""
    return frame.assign(**{column: [json.dumps(value, sort_keys=True) for value in frame[column]]})


def for_a_sheet(frame: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before words that a spreadsheet would take for a formula; numbers stay as they are."""

    def harmless(value: object) -> object:
        return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value

    return frame.rename(columns=harmless).map(harmless)


def _of_one_type(frame: pd.DataFrame) -> pd.DataFrame:
    """Make text of the values of columns that Parquet has no type for."""
    import pyarrow as pa

    def as_text(value: object) -> str | None:
        return None if value is None or value is pd.NA or value != value else str(value)

    odd = {}
    for name in map(str, frame.columns):
        if not pd.api.types.is_object_dtype(frame[name]):
            continue
        try:
            pa.Array.from_pandas(frame[name])
        except (pa.ArrowException, OverflowError):
            odd[name] = frame[name].map(as_text)
    return frame.assign(**odd)
