"""References to cite for a run: the software, the paper, and the packages and models it used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from edokit._errors import InputError, local_path
from edokit._io.documents import read_json
from edokit._package import __version__
from edokit.runs.record import RUN_RECORD

_DOCUMENTS = (RUN_RECORD, "manifest.json", "search.json", "summary.json")
"""Files of a run that name recipes and models."""
_FOLDER_LEVELS = 4
"""Levels of folders that contain these files: the run's folder, and three levels below it."""


@dataclass(frozen=True)
class Reference:
    """An entry of a bibliography.

    Attributes
    ----------
    key : str
        The argument of ``\\cite``.
    kind : str
        The type of the entry in BibTeX.
    fields : mapping of str to str
        The fields in the order of the entry, in LaTeX.
    """

    key: str
    kind: str
    fields: dict[str, str] = field(default_factory=dict)

    def to_bibtex(self) -> str:
        """Return the entry in BibTeX."""
        lines = [f"  {name} = {{{value}}}," for name, value in self.fields.items()]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


def _article(key: str, author: str, title: str, year: str, **further: str) -> Reference:
    fields = {"author": author, "title": title, **further, "year": year}
    return Reference(key, "article", fields)


def _conference(key: str, author: str, title: str, year: str, **further: str) -> Reference:
    fields = {"author": author, "title": title, **further, "year": year}
    return Reference(key, "inproceedings", fields)


SOFTWARE = Reference(
    "edokit",
    "software",
    {
        "author": "{The EDO developers}",
        "title": "{EDO}: learning from people who disagree",
        "version": __version__,
        "year": "2026",
    },
)
PAPER = _conference(
    "cui2026edo",
    "Cui, Xia and Huang, Ziyi and Abeynayake, N. R.",
    "Ensemble Diversity Optimization for Subjective Supervision",
    "2026",
    booktitle="Conference on Uncertainty in Artificial Intelligence (UAI)",
)
NUMPY = _article(
    "harris2020numpy",
    "Harris, Charles R. and Millman, K. Jarrod and van der Walt, St{\\'e}fan J. and others",
    "Array programming with {NumPy}",
    "2020",
    journal="Nature",
    volume="585",
    pages="357--362",
    doi="10.1038/s41586-020-2649-2",
)
SCIPY = _article(
    "virtanen2020scipy",
    "Virtanen, Pauli and Gommers, Ralf and Oliphant, Travis E. and others",
    "{SciPy} 1.0: fundamental algorithms for scientific computing in {Python}",
    "2020",
    journal="Nature Methods",
    volume="17",
    pages="261--272",
    doi="10.1038/s41592-019-0686-2",
)
SCIKIT_LEARN = _article(
    "pedregosa2011scikit",
    'Pedregosa, Fabian and Varoquaux, Ga{\\"e}l and Gramfort, Alexandre and others',
    "Scikit-learn: machine learning in {Python}",
    "2011",
    journal="Journal of Machine Learning Research",
    volume="12",
    pages="2825--2830",
)
OPTUNA = _conference(
    "akiba2019optuna",
    "Akiba, Takuya and Sano, Shotaro and Yanase, Toshihiko and Ohta, Takeru and Koyama, Masanori",
    "Optuna: a next-generation hyperparameter optimization framework",
    "2019",
    booktitle="Proceedings of the 25th ACM SIGKDD International Conference on Knowledge Discovery"
    " and Data Mining",
    pages="2623--2631",
    doi="10.1145/3292500.3330701",
)
NSGA_II = _article(
    "deb2002nsga",
    "Deb, Kalyanmoy and Pratap, Amrit and Agarwal, Sameer and Meyarivan, T.",
    "A fast and elitist multiobjective genetic algorithm: {NSGA-II}",
    "2002",
    journal="IEEE Transactions on Evolutionary Computation",
    volume="6",
    number="2",
    pages="182--197",
    doi="10.1109/4235.996017",
)
SENTENCE_BERT = _conference(
    "reimers2019sentence",
    "Reimers, Nils and Gurevych, Iryna",
    "Sentence-{BERT}: sentence embeddings using {Siamese} {BERT}-networks",
    "2019",
    booktitle="Proceedings of EMNLP-IJCNLP 2019",
    pages="3982--3992",
    doi="10.18653/v1/D19-1410",
)
MINILM = _conference(
    "wang2020minilm",
    "Wang, Wenhui and Wei, Furu and Dong, Li and Bao, Hangbo and Yang, Nan and Zhou, Ming",
    "{MiniLM}: deep self-attention distillation for task-agnostic compression of pre-trained"
    " transformers",
    "2020",
    booktitle="Advances in Neural Information Processing Systems",
    volume="33",
)
MPNET = _conference(
    "song2020mpnet",
    "Song, Kaitao and Tan, Xu and Qin, Tao and Lu, Jianfeng and Liu, Tie-Yan",
    "{MPNet}: masked and permuted pre-training for language understanding",
    "2020",
    booktitle="Advances in Neural Information Processing Systems",
    volume="33",
)
TRANSFORMERS = _conference(
    "wolf2020transformers",
    "Wolf, Thomas and Debut, Lysandre and Sanh, Victor and others",
    "Transformers: state-of-the-art natural language processing",
    "2020",
    booktitle="Proceedings of EMNLP 2020: System Demonstrations",
    pages="38--45",
    doi="10.18653/v1/2020.emnlp-demos.6",
)
_BY_RECIPE = {
    "linear": [SCIKIT_LEARN],
    "sklearn": [SCIKIT_LEARN],
    "trees": [SCIKIT_LEARN],
    "encoder": [SENTENCE_BERT],
    "transformer": [TRANSFORMERS],
}
_BY_MODEL = {"minilm": MINILM, "mpnet": MPNET}
"""Models by a part of their names, in lower case."""


def citations(run: str | Path) -> list[Reference]:
    """Return the references of a run: EDO, its paper, and the packages and models it used.

    Parameters
    ----------
    run : str or Path
        The folder of a run.

    Raises
    ------
    InputError
        If the folder contains neither the record of a run nor a manifest of members.
    """
    folder = local_path(run)
    documents = dict(_documents(folder))
    if not documents:
        raise InputError(
            f"{folder} is not the folder of a run: it does not contain {RUN_RECORD}",
            "name the output folder of a run",
            code="wrong-folder",
        )
    references = {SOFTWARE.key: SOFTWARE, PAPER.key: PAPER}
    further: list[Reference] = [NUMPY, SCIPY]
    for path, document in documents.items():
        if path.name == "search.json" or _values(document, "kind") & {"search"}:
            further.extend((OPTUNA, NSGA_II))
        for recipe in sorted(_values(document, "recipe")):
            further.extend(_BY_RECIPE.get(recipe, ()))
        for model in sorted(_values(document, "model") | _values(document, "encoder")):
            for part, reference in _BY_MODEL.items():
                if part in model.lower():
                    further.append(reference)
    references.update({reference.key: reference for reference in further})
    return list(references.values())


def _documents(folder: Path) -> Iterator[tuple[Path, object]]:
    """The documents of a run that name recipes and models."""
    for depth in range(_FOLDER_LEVELS):
        for name in _DOCUMENTS:
            for path in sorted(folder.glob("*/" * depth + name)):
                yield path, read_json(path)


def _values(document: object, key: str) -> set[str]:
    """The texts under a key, anywhere in a document."""
    texts: set[str] = set()
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get(key), str):
                texts.add(value[key])
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return texts
