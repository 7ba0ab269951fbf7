"""Files can't name code: a recipe or a package that a file names is imported only if trusted."""

from __future__ import annotations

from collections.abc import Collection

from edokit._errors import InputError, examples, option
from edokit.members.registry import recipe_names


def refuse_code(source: str, recipe: str, trust: Collection[str] | None = None) -> None:
    """Raise an error if a file names a recipe outside of EDO, which would be imported.

    ``trust`` are packages that may be imported nevertheless; None if the caller has no such
    parameter.
    """
    if recipe in recipe_names() or ":" not in recipe:
        return  # find_recipe reports an unknown recipe
    package = recipe.partition(":")[0].partition(".")[0]
    if package == "edokit" or package in (trust or ()):
        return
    raise code_in_file(source, "recipe", recipe, None if trust is None else package)


def code_in_file(source: str, key: str, value: str, package: str | None = None) -> InputError:
    """The error for a file that asks for an import; ``package`` could be trusted."""
    if package is None:
        hint = f"if you trust it, set {option(key, value)} yourself"
    else:
        hint = f"if you trust it, add {option('trust', package)}"
    return InputError(
        f"{source} has {key} = {examples([value])}, which would import code; a file can't ask for"
        " that",
        hint,
        code="untrusted-code",
    )
