"""A model with options of its own, which count where a request leaves the choice."""

from __future__ import annotations

from collections.abc import Iterator

from gotato_py import Model, ModelEvent, ModelOptions, ModelRequest, Scope, replace

from ._named import CostOf, NamedModel, capabilities_of, cost_of_model, name_of, provider_of

_NONE = ModelOptions()


def with_options(model: NamedModel, options: ModelOptions) -> NamedModel:
    """The model, asked with these options."""
    return model if options == _NONE else _WithOptions(model, options)


class _WithOptions:
    """Adds what a request does not say."""

    def __init__(self, model: Model, options: ModelOptions) -> None:
        self._model = model
        self._options = options

    def __repr__(self) -> str:
        return f"{self._model!r} with {self._options!r}"

    @property
    def name(self) -> str:
        """The model's name."""
        return name_of(self._model)

    @property
    def capabilities(self) -> frozenset[str]:
        """What the model can do."""
        return capabilities_of(self._model)

    @property
    def cost_of(self) -> CostOf | None:
        """What prices the model's runs."""
        return cost_of_model(self._model)

    @property
    def provider(self) -> str:
        """The service that the model asks."""
        return provider_of(self._model)

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """The model's stream for the completed request."""
        return self._model.stream(replace(request, options=_merged(request.options, self._options)), scope)


def _merged(asked: ModelOptions, own: ModelOptions) -> ModelOptions:
    names = (name for name in ModelOptions.__match_args__ if name != "metadata")
    left = {name: getattr(own, name) for name in names if getattr(asked, name) == getattr(_NONE, name)}
    return replace(asked, metadata={**own.metadata, **asked.metadata}, **left)
