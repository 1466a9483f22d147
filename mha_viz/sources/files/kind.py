"""Files of a person's own as a kind of source: their settings name a file, and do not hold it."""

from dataclasses import dataclass
from typing import NoReturn

from mha_viz.core.rules import Wrong
from mha_viz.settings.rules import Ruled, ruled
from mha_viz.sources.base import Kind


def typed_file(argument: str, value: object) -> str:
    if not isinstance(value, str):
        raise Wrong(argument, value, "must be the name of a file.", [{argument: ""}])
    return value


@dataclass(frozen=True)
class Opened(Ruled):
    """``file`` is the name of one that was opened, "" for none."""

    file: str = ruled("", typed_file)


class File(Kind[Opened]):
    """Recordings, weights and maps. Whoever has opened one keeps it: a name alone opens nothing."""

    name = "file"
    title = "file of your own"
    settings = Opened
    in_address = False

    def called(self, settings: Opened) -> str:
        return settings.file

    def open(self, settings: Opened) -> NoReturn:
        raise Wrong("file", settings.file, "is not open here: open the file itself.")

    def versions(self, settings: Opened) -> dict[str, str]:
        return {"model": "a recording: not known", "tokenizer": "not known", "generation": "not known"}


FILE = File()
