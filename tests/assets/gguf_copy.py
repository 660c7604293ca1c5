"""What the scripts that derive one GGUF from another share: metadata taken over, file finished and hashed."""

import hashlib
from pathlib import Path

from gguf import GGUFReader, GGUFValueType, GGUFWriter


def start(reader: GGUFReader, out: Path, without: tuple[str, ...] = ()) -> GGUFWriter:
    """A writer for `out` with all metadata of `reader` but the keys in `without`, in the same order."""
    writer = GGUFWriter(out, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture" or key in without:
            continue  # the first two the writer adds itself
        kind = field.types[0]
        element = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, sub_type=element)
    return writer


def finish(writer: GGUFWriter, out: Path) -> None:
    """Writes the file and prints its digest."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with open(out, "rb") as file:
        print(f"sha256 {hashlib.file_digest(file, 'sha256').hexdigest()}")
