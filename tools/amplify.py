"""Read files that are small on the disk and large in memory; each must be read or refused cheaply.

    python tools/amplify.py --seconds 60

Every file is read in a process of its own, which may grow by `--memory` MiB, or 60 times the size
of the file if that is more, and take `--seconds` seconds of a processor. The exit status is 1 if
one took more, or ended in anything but a result or one line.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

SHEET = (
    '<?xml version="1.0" encoding="UTF-8"?>{prolog}'
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    "<sheetData>{rows}</sheetData></worksheet>"
)
BOOK = {
    "[Content_Types].xml": '<?xml version="1.0"?>'
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels"'
    ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/xl/workbook.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>',
    "_rels/.rels": '<?xml version="1.0"?><Relationships'
    ' xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1"'
    ' Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"'
    ' Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": '<?xml version="1.0"?><workbook'
    ' xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r='
    '"http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
    '<sheet name="votes" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<?xml version="1.0"?><Relationships'
    ' xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1"'
    ' Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"'
    ' Target="worksheets/sheet1.xml"/></Relationships>',
}
RATIO = 60
"""The most times that a large file may grow in memory."""
VOTES = [("item", "annotator", "label"), ("a", "ann", "0"), ("a", "ben", "1"), ("b", "ann", "1")]


def cell(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def votes_xml() -> str:
    """Rows of a small table of annotations."""
    rows = ""
    for number, values in enumerate(VOTES, start=1):
        cells = [
            cell(f"{letter}{number}", text) for letter, text in zip("ABC", values, strict=True)
        ]
        rows += f'<row r="{number}">{"".join(cells)}</row>'
    return rows


def write_xlsx(path: Path, rows: str, prolog: str = "", **more: str) -> Path:
    """A workbook with one sheet of these rows, as XML."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in BOOK.items():
            archive.writestr(name, content)
        archive.writestr("xl/worksheets/sheet1.xml", SHEET.format(rows=rows, prolog=prolog))
        for name, content in more.items():
            archive.writestr(name, content)
    return path


def column_letters(number: int) -> str:
    """A, B, …, Z, AA, …, XFD."""
    letters = ""
    while number:
        number, further = divmod(number - 1, 26)
        letters = chr(65 + further) + letters
    return letters


def far_cell(folder: Path) -> Path:
    row = f'<row r="1048576">{cell("XFD1048576", "x")}</row>'
    return write_xlsx(folder / "far-cell.xlsx", votes_xml() + row)


def far_row(folder: Path) -> Path:
    return write_xlsx(
        folder / "far-row.xlsx", votes_xml() + f'<row r="{10**12}">{cell("A1", "x")}</row>'
    )


def wide_rows(folder: Path) -> Path:
    rows = [f'<row r="{k}">{cell(f"XFD{k}", "x")}</row>' for k in range(5, 60_000)]
    return write_xlsx(folder / "wide-rows.xlsx", votes_xml() + "".join(rows))


def diagonal_cells(folder: Path) -> Path:
    rows = [f'<row r="{k}">{cell(f"{column_letters(k)}{k}", "x")}</row>' for k in range(5, 16_384)]
    return write_xlsx(folder / "diagonal-cells.xlsx", votes_xml() + "".join(rows))


def blank_sheet(folder: Path) -> Path:
    return write_xlsx(folder / "blanks.xlsx", votes_xml() + " " * (300 << 20))


def shared_text(folder: Path) -> Path:
    """One text of 20 MB in 2,000 cells."""
    path = folder / "shared-text.xlsx"
    rows = [f'<row r="{k}"><c r="A{k}" t="s"><v>0</v></c></row>' for k in range(5, 2_000)]
    write_xlsx(path, votes_xml() + "".join(rows))
    kinds = BOOK["[Content_Types].xml"].replace(
        "</Types>",
        '<Override PartName="/xl/sharedStrings.xml" ContentType='
        '"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/></Types>',
    )
    strings = (
        '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>'
        + "x" * 20_000_000
        + "</t></si></sst>"
    )
    entries = {"[Content_Types].xml": kinds, "xl/sharedStrings.xml": strings}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            entries.setdefault(name, archive.read(name).decode())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def entities(folder: Path) -> Path:
    """Entities that name entities: 10^9 letters out of ten lines."""
    names = [f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 10)]
    prolog = f'<!DOCTYPE worksheet [<!ENTITY e0 "x">{"".join(names)}]>'
    row = f'<row r="5">{cell("A5", "&e9;")}</row>'
    return write_xlsx(folder / "entities.xlsx", votes_xml() + row, prolog)


def external_entity(folder: Path) -> Path:
    prolog = '<!DOCTYPE worksheet [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
    row = f'<row r="5">{cell("A5", "&e;")}</row>'
    return write_xlsx(folder / "external-entity.xlsx", votes_xml() + row, prolog)


def damaged_deflate(folder: Path) -> Path:
    path = write_xlsx(folder / "damaged.xlsx", votes_xml() * 50)
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("xl/worksheets/sheet1.xml")
    content = bytearray(path.read_bytes())
    start = entry.header_offset + 30 + len(entry.filename)
    content[start + 10 : start + 60] = b"\xff" * 50
    path.write_bytes(content)
    return path


def rows_of(text: object, number: int, kind: pa.DataType) -> pa.Table:
    names = [f"i{k}" for k in range(number)]
    texts = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(number, np.int32)), pa.array([text], kind)
    )
    labels = ["0", "1"] * (number // 2)
    return pa.table({"item": names, "annotator": ["ann"] * number, "label": labels, "text": texts})


def dictionary_text(folder: Path) -> Path:
    path = folder / "dictionary-text.parquet"
    pa_parquet.write_table(rows_of("ab " * 2_000_000, 4_000, pa.string()), path, compression="zstd")
    return path


def dictionary_bytes(folder: Path) -> Path:
    path = folder / "dictionary-bytes.parquet"
    table = rows_of(b"ab " * 2_000_000, 4_000, pa.binary())
    pa_parquet.write_table(table, path, compression="zstd")
    return path


def dictionary_lists(folder: Path) -> Path:
    """One text of 6 MB in a list in each of 4,000 rows."""
    path = folder / "dictionary-lists.parquet"
    flat = rows_of("ab " * 2_000_000, 4_000, pa.string())
    lists = pa.ListArray.from_arrays(
        pa.array(np.arange(4_001, dtype=np.int32)), flat["text"].combine_chunks()
    )
    pa_parquet.write_table(
        flat.drop(["text"]).append_column("label_list", lists), path, compression="zstd"
    )
    return path


def delta_texts(folder: Path) -> Path:
    """Texts of 6 MB that differ in their ends: each is a few bytes in the file."""
    path = folder / "delta-texts.parquet"
    start = "ab " * 2_000_000
    schema = pa.schema(
        [
            ("item", pa.string()),
            ("annotator", pa.string()),
            ("label", pa.string()),
            ("text", pa.string()),
        ]
    )
    with pa_parquet.ParquetWriter(
        path,
        schema,
        use_dictionary=False,
        compression="zstd",
        column_encoding={"text": "DELTA_BYTE_ARRAY"},
        write_statistics=False,
    ) as writer:
        columns = {
            "item": [f"i{k}" for k in range(200)],
            "annotator": ["ann"] * 200,
            "label": ["0", "1"] * 100,
            "text": [start + str(k) for k in range(200)],
        }
        writer.write_table(pa.table(columns, schema))
    return path


def forged_sizes(folder: Path) -> Path:
    """A page of 800 MB whose size the footer states as 1,000 bytes."""
    path = folder / "forged-sizes.parquet"
    long_text = "ab" * 200_000_000
    columns = {
        "item": ["a", "b"],
        "annotator": ["ann", "ann"],
        "label": ["0", "1"],
        "text": [long_text, long_text],
    }
    # Statistics of such texts take longer than the rest; readers need none.
    options = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    pa_parquet.write_table(pa.table(columns), path, **options)
    group = pa_parquet.read_metadata(path).row_group(0)
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:-8]
    for size in (group.total_byte_size, group.column(3).total_uncompressed_size):
        footer = footer.replace(b"\x16" + thrift_number(size), b"\x16" + thrift_number(1000))
    path.write_bytes(content[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


def thrift_number(number: int) -> bytes:
    """A number as Thrift writes it: seven bits a byte, the sign first."""
    remainder = 2 * number
    written = []
    while remainder > 127:
        written.append(remainder & 127 | 128)
        remainder >>= 7
    return bytes([*written, remainder])


def many_columns_parquet(folder: Path) -> Path:
    path = folder / "many-columns.parquet"
    names = [f"c{k}" for k in range(20_000)]
    pa_parquet.write_table(pa.table({name: pa.nulls(1, pa.string()) for name in names}), path)
    return path


def new_keys(folder: Path) -> Path:
    path = folder / "new-keys.jsonl"
    lines = [
        json.dumps({"item": f"i{k}", "annotator": "ann", "label": "0", f"k{k}": 1})
        for k in range(20_000)
    ]
    path.write_text("\n".join(lines))
    return path


def empty_objects(folder: Path) -> Path:
    path = folder / "empty-objects.jsonl"
    path.write_text("{}\n" * 3_000_000)
    return path


def empty_lists(folder: Path) -> Path:
    path = folder / "empty-lists.json"
    path.write_text("[" + "[]," * 20_000_000 + "[]]")
    return path


def lewidi_of_objects(folder: Path) -> Path:
    path = folder / "objects.json"
    path.write_text('{"1": [' + "{}," * 20_000_000 + "{}]}")
    return path


def long_header(folder: Path) -> Path:
    path = folder / "long-header.csv"
    names = ",".join(f"c{k}" for k in range(1_000_000))
    path.write_text(names + "\n" + "," * 999_999 + "\n")
    return path


def long_row(folder: Path) -> Path:
    path = folder / "long-row.csv"
    path.write_text("item,annotator,label\n" + "," * 1_000_000 + "\n")
    return path


def short_lines(folder: Path) -> Path:
    path = folder / "short-lines.txt"
    path.write_text("a\n" * 20_000_000)
    return path


def packed_zeros(folder: Path) -> Path:
    path = folder / "zeros.npz"
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.zeros((60_000_000, 1, 2), np.float32))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("probabilities.npy", stream.getvalue())
    return path


def packed_estimator(folder: Path) -> Path:
    """A fitted estimator whose coefficients are 480 MB of zeros."""
    from sklearn.linear_model import LogisticRegression

    from edokit._io.skops import write_estimator

    model = LogisticRegression().fit(np.eye(4), [0, 1] * 2)
    model.coef_ = np.zeros((1, 60_000_000))
    path = folder / "zeros.skops"
    write_estimator(model, path)
    return path


def similar_texts(folder: Path) -> Path:
    """Texts that are all near-duplicates of each other."""
    path = folder / "similar-texts.csv"
    start = "the same long sentence about the bus that was late again " * 4
    rows = [f"i{k},ann,{k % 2},{start}{k}\n" for k in range(6_000)]
    path.write_text("item,annotator,label,text\n" + "".join(rows))
    return path


def long_texts(folder: Path) -> Path:
    """Forty texts of a million different characters."""
    path = folder / "long-texts.jsonl"
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz     "))
    with path.open("w") as stream:
        for k in range(40):
            text = "".join(rng.choice(letters, 1_000_000))
            row = {"item": f"i{k}", "annotator": "ann", "label": str(k % 2), "text": text}
            stream.write(json.dumps(row) + "\n")
    return path


def long_number(folder: Path) -> Path:
    """A character reference of 6,000 digits."""
    path = folder / "long-number.csv"
    rows = [f"i{k},ann,{k % 2},see &#{'9' * 6000}; here {k}\n" for k in range(4)]
    path.write_text("item,annotator,label,text\n" + "".join(rows))
    return path


# --- Exports of annotation tools -----------------------------------------------------------------


def label_studio_fields(folder: Path) -> Path:
    """Tasks that have a field of their own each."""
    path = folder / "label-studio-fields.json"
    path.write_text(json.dumps([studio_task(k, "kind", {f"f{k}": "x"}) for k in range(20_000)]))
    return path


def label_studio_controls(folder: Path) -> Path:
    """Tasks that are answered by a control of their own each."""
    path = folder / "label-studio-controls.json"
    path.write_text(json.dumps([studio_task(k, f"c{k}", {}) for k in range(20_000)]))
    return path


def studio_task(number: int, control: str, fields: dict[str, str]) -> dict[str, object]:
    result = {"from_name": control, "value": {"choices": [str(number % 2)]}}
    annotation = {"completed_by": 1, "result": [result]}
    return {"id": number, "data": {"text": "kind"} | fields, "annotations": [annotation]}


def argilla_fields(folder: Path) -> Path:
    """Records that have a field of their own each."""
    path = folder / "argilla-fields.jsonl"
    lines = []
    for k in range(20_000):
        record = {"id": str(k), f"f{k}": "x", "kind.responses": [str(k % 2)]}
        users = {"kind.responses.users": ["ann"], "kind.responses.status": ["submitted"]}
        lines.append(json.dumps(record | users))
    path.write_text("\n".join(lines))
    return path


def argilla_texts(folder: Path) -> Path:
    """One text of 6 MB in 4,000 records."""
    path = folder / "argilla-texts.parquet"
    table = rows_of("ab " * 2_000_000, 4_000, pa.string()).drop(["annotator", "label", "item"])
    columns = {"id": np.arange(4_000).astype(str), "kind.responses": [["0"]] * 4_000}
    columns |= {"kind.responses.users": [["ann"]] * 4_000}
    columns |= {"kind.responses.status": [["submitted"]] * 4_000}
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    pa_parquet.write_table(table, path, compression="zstd")
    return path


def doccano_fields(folder: Path) -> Path:
    """Examples that have metadata of their own each."""
    path = folder / "doccano-fields.jsonl"
    lines = [
        json.dumps({"id": k, "text": "x", "label": [str(k % 2)], "Comments": [], f"f{k}": "x"})
        for k in range(20_000)
    ]
    path.write_text("\n".join(lines))
    return path


def potato_schemes(folder: Path) -> Path:
    """What one annotator answered, with a scheme of its own for each item."""
    path = folder / "potato-schemes" / "ann"
    path.mkdir(parents=True)
    answers = {f"i{k}": [[{"schema": f"s{k}", "name": "yes"}, True]] for k in range(20_000)}
    state = {"user_id": "ann", "instance_id_to_label_to_value": answers}
    (path / "user_state.json").write_text(json.dumps(state))
    return path.parent


def potato_aliases(folder: Path) -> Path:
    """Answers beside a configuration whose aliases would become 10^9 words."""
    path = folder / "potato-aliases" / "ann"
    path.mkdir(parents=True)
    answers = {f"i{k}": [[{"schema": "kind", "name": str(k % 2)}, True]] for k in range(10)}
    state = {"user_id": "ann", "instance_id_to_label_to_value": answers}
    (path / "user_state.json").write_text(json.dumps(state))
    lines = ["a0: &a0 [x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 10)]
    lines += ["data_files: *a9", "annotation_schemes: *a9"]
    (path.parent / "project.yaml").write_text("\n".join(lines))
    return path.parent


FILES: tuple[Callable[[Path], Path], ...] = (
    far_cell,
    far_row,
    wide_rows,
    diagonal_cells,
    blank_sheet,
    shared_text,
    entities,
    external_entity,
    damaged_deflate,
    dictionary_text,
    dictionary_bytes,
    dictionary_lists,
    delta_texts,
    forged_sizes,
    many_columns_parquet,
    new_keys,
    empty_objects,
    empty_lists,
    lewidi_of_objects,
    long_header,
    long_row,
    short_lines,
    packed_zeros,
    packed_estimator,
    similar_texts,
    long_texts,
    long_number,
    label_studio_fields,
    label_studio_controls,
    argilla_fields,
    argilla_texts,
    doccano_fields,
    potato_schemes,
    potato_aliases,
)
"""Functions that write a file, or a folder of an annotation tool, into a folder each."""


def files_of(path: Path) -> list[Path]:
    """The file itself, or the files in a folder."""
    if path.is_file():
        return [path]
    return [file for file in path.rglob("*") if file.is_file()]


def file_size(path: Path) -> int:
    return path.stat().st_size


@dataclass(frozen=True)
class Reading:
    """How a file was read.

    Attributes
    ----------
    outcome : str
        "read", "refused" (in one line), "broken" (anything else) or "too long".
    message : str
        What was said.
    growth : int
        Bytes by which the process grew at most.
    """

    outcome: str
    message: str
    growth: int
    seconds: float


def read(path: Path) -> object:
    """Read a file as the commands do."""
    if path.suffix == ".txt":
        from edokit.members.texts import read_texts

        return read_texts(path)
    if path.suffix == ".npz":
        from edokit.predictions.shards import read_predictions

        return read_predictions(path)
    if path.suffix == ".skops":
        from edokit._io.skops import read_estimator_file

        return read_estimator_file(path)
    from edokit.datasets.info import describe_annotations
    from edokit.datasets.read import read_annotations

    return describe_annotations(read_annotations(path))


def measure(path: Path) -> None:
    """Print how a file was read, in this process, as JSON."""
    import warnings

    import edokit._io.tables
    import edokit.datasets.info  # noqa: F401
    from edokit._errors import InputError

    warnings.simplefilter("ignore")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    outcome = "read"
    message = ""
    try:
        read(path)
    except InputError as error:
        message = str(error)
        outcome = "broken"
        if len(message.splitlines()) == 1:
            outcome = "refused"
    except BaseException as error:
        outcome = "broken"
        message = f"{type(error).__name__}: {error}"[:300]
    seconds = time.process_time() - begun
    growth = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    print(json.dumps([outcome, message, growth, seconds]))


def read_apart(path: Path, seconds: float, memory: float | None = None) -> Reading:
    """Read a file in a process of its own, which may take so much of a processor and of memory.

    ``memory`` limits its address space, in bytes.
    """

    def limit() -> None:
        timeout = int(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (timeout, timeout + 5))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))

    command = [sys.executable, __file__, "--measure", str(path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=20 * seconds,  # other processes may have the processor, too
            preexec_fn=limit,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return Reading("too long", "", 0, seconds)
    if done.returncode == -signal.SIGXCPU:
        return Reading("too long", "", 0, seconds)
    if done.returncode:
        return Reading("broken", f"status {done.returncode}: {done.stderr[-300:]}", 0, 0.0)
    return Reading(*json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120, help="that a file may take")
    parser.add_argument("--memory", type=float, default=1024, help="MiB that a file may take")
    parser.add_argument("--only", default="", help="files whose names begin so")
    parser.add_argument("--measure", type=Path, help="read this file, in this process")
    arguments = parser.parse_args()
    if arguments.measure is not None:
        measure(arguments.measure)
        return 0
    troubles = []
    outcomes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="edo-amplify-") as name:
        for make in FILES:
            if not make.__name__.startswith(arguments.only):
                continue
            path = make(Path(name))
            reading = read_apart(path, arguments.seconds, memory=8 << 30)
            growth = reading.growth / 2**20
            size = sum(map(file_size, files_of(path))) / 1024
            print(
                f"{path.name} ({size:.1f} KiB): {reading.outcome}, {growth:.0f} MiB,"
                f" {reading.seconds:.1f} s. {reading.message}",
                flush=True,
            )
            outcomes.append(reading.outcome)
            allowed = max(arguments.memory, RATIO * size / 1024)
            if reading.outcome not in ("read", "refused") or growth > allowed:
                troubles.append(path.name)
            for file in files_of(path):
                file.unlink()
    refused = outcomes.count("refused")
    print(
        f"{len(outcomes)} files: {refused} refused, {outcomes.count('read')} read,"
        f" {', '.join(troubles) or 'none'} beyond {arguments.memory:.0f} MiB and"
        f" {arguments.seconds:.0f} s"
    )
    return bool(troubles)


if __name__ == "__main__":
    raise SystemExit(main())
