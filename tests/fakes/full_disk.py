"""A disk that is full, for the files that this very process writes."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def room_for(count: int) -> Iterator[None]:
    """No file may become longer than so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
