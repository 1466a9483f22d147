"""The versions of the libraries that a computation ran on."""

from importlib import metadata


def release(package: str) -> str:
    """The installed release of ``package``, as a requirement pins it: "2.13.0" for each build of torch.

    A build of torch names itself after a "+", as in 2.13.0+cpu and 2.13.0+cu130. Whether the installed distribution says that too depends
    on the index it came from, so it is left out. Raises PackageNotFoundError if the package is not installed.
    """
    return metadata.version(package).partition("+")[0]
