"""Members on the vectors of an endpoint: the recipe `encoder`, computed by a server."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from edokit._errors import InputError, option
from edokit.members.arrays import read_arrays, write_arrays
from edokit.members.recipe import Capabilities
from edokit.members.recipe_options import Range
from edokit.members.recipes import _endpoint as endpoints
from edokit.members.recipes._embeddings import EmbeddingServer
from edokit.members.recipes._regression import ARRAYS
from edokit.members.recipes.encoder import EncoderMember

_FILE = "embeddings.npz"


@dataclass(eq=False)
class EmbeddingMember(EncoderMember):
    """Logistic regression on vectors that a server computes, at ``/v1/embeddings``.

    Options are those of `ClassifierMember`, and those below.

    Parameters
    ----------
    base_url : str, default=""
        The endpoint; empty: that of the environment, OPENAI_BASE_URL.
    model : str, default=""
        The name of the model at the endpoint; required.
    price : float, default=None
        Price per million tokens.
    concurrency : int, default=8
        Requests at a time.
    timeout : float, default=60
        Seconds after which a request fails.
    retries : int, default=5
        How often a failed request is repeated.
    """

    capabilities = Capabilities(
        endpoint=True,
        multi_label=True,
        trust=True,
        operational=("concurrency", "timeout", "retries", "price"),
    )

    model: str = ""
    base_url: str = ""
    price: Annotated[float | None, Range(0, 1e9)] = None
    concurrency: Annotated[int, Range(1, 1000)] = 8
    timeout: Annotated[float, Range(0, 86400, above=True)] = 60.0
    retries: Annotated[int, Range(0, 100)] = 5
    _server: EmbeddingServer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        base_url = self.base_url or os.environ.get(endpoints.ADDRESS_VARIABLE, "")
        if not (base_url and self.model.strip()):
            raise InputError(
                "the recipe embeddings needs an endpoint to ask, and the name of a model there",
                f"name them with {option('base_url')}, or {endpoints.ADDRESS_VARIABLE} in the"
                f" environment, and with {option('model')}",
                code="missing-option",
            )
        self.base_url = endpoints.check_address(base_url)
        self._server = EmbeddingServer(
            self.base_url,
            self.model,
            timeout=self.timeout,
            retries=self.retries,
            concurrency=self.concurrency,
            price=self.price,
        )

    @classmethod
    def checked_options(cls, options: Mapping[str, object], source: str = "") -> dict[str, Any]:
        """Options with the endpoint of the environment, if they name none.

        A file may not decide where texts and keys go.
        """
        if source and options.get("base_url"):
            endpoints.refuse_address(source, str(options["base_url"]), None)
        address = options.get("base_url") or os.environ.get(endpoints.ADDRESS_VARIABLE, "")
        return {**options, "base_url": address}

    @property
    def address(self) -> str:
        """The endpoint, which it sends texts to."""
        return self.base_url

    @property
    def onnx_file(self) -> Path | None:
        """None: the model is elsewhere."""
        return None

    def save(self, folder: Path) -> None:
        """Write one file of plain arrays; no key."""
        options = {
            "model": np.array(self.model),
            "base_url": np.array(self.base_url),
            "context": np.array(self.context),
        }
        write_arrays(folder / _FILE, **options, **self._arrays())

    @classmethod
    def load(  # type: ignore[override]
        cls, folder: Path, *, trust: Sequence[str] = ()
    ) -> EmbeddingMember:
        """Read what ``save`` wrote; an endpoint on another machine must be trusted."""
        arrays = read_arrays(folder / _FILE, (*ARRAYS, "model", "base_url", "context"))
        base_url = str(arrays["base_url"])
        endpoints.refuse_address(f"the member in {folder}", base_url, trust)
        member = cls(
            int(arrays["n_classes"]),
            model=str(arrays["model"]),
            base_url=base_url,
            context=float(arrays["context"]),
        )
        member._take_arrays(arrays)
        return member

    def _text_encoder(self) -> EmbeddingServer:
        """The server."""
        return self._server
