"""`EDOEnsemble` for predictions, `EDOClassifier` for scikit-learn models."""
