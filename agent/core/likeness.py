"""What a person or a model has probably meant by a name that there is not."""

from collections.abc import Iterable


def alike(word: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Those of `known` that are like `word`, the most alike first, and as alike as `cutoff` (0 to 1)."""
    import difflib  # only where something is wrong

    return difflib.get_close_matches(word, list(known), n=most, cutoff=cutoff)


def most_alike(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The first of `alike`, empty where there is none."""
    return next(iter(alike(word, known, cutoff=cutoff)), "")


def did_you_mean(
    word: str, known: Iterable[str], otherwise: str, *, cutoff: float = 0.6, form: str = "{!r}", most: int = 1
) -> str:
    """The hint "did you mean ...?" with what is `alike`, and `otherwise` where nothing is.

    Args:
        form: how a name is shown, a format with one place.
        most: so many names at most, joined by "or".
    """
    names = [form.format(name) for name in alike(word, known, most=most, cutoff=cutoff)]
    return f"did you mean {' or '.join(names)}?" if names else otherwise
