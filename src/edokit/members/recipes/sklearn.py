"""Any scikit-learn classifier by its import path."""

from edokit.members.sklearn_recipe import SklearnMember

__all__ = ["SklearnMember"]
