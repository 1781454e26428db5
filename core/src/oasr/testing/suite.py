"""What every suite shares."""

from collections.abc import Mapping
from types import FunctionType
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings

from oasr.plugin import ComponentSpec, Kind
from oasr.registry import Registry, default_registry

LAW = settings(
    deadline=None,
    max_examples=50,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
"""Of property tests: the same examples everywhere, so that nobody's build fails by chance."""


class Suite:
    """Laws of one kind of component, as tests. Subclass it under a name that starts with `Test`.

    `expected_failures` names tests that fail for a known reason; one that passes after all is a failure.
    """

    expected_failures: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **settings: Any):
        super().__init_subclass__(**settings)
        for name, reason in cls.expected_failures.items():
            inherited = getattr(cls, name, None)
            if not isinstance(inherited, FunctionType):
                raise TypeError(f"expected_failures of {cls.__name__} names {name}, which is no test of this suite")
            own = _copy(inherited)
            setattr(cls, name, pytest.mark.xfail(reason=reason, strict=True)(own))

    @pytest.fixture
    def registry(self) -> Registry:
        """Where components are looked up: by default all that is installed."""
        return default_registry()


class ComponentSuite(Suite):
    """Laws of one component, found by name."""

    kind: ClassVar[Kind]
    component: ClassVar[str]
    """Its name, or `name@distribution`."""
    options: ClassVar[Mapping[str, Any]] = {}
    """What to set; the defaults unless given."""

    @pytest.fixture
    def spec(self, registry: Registry) -> ComponentSpec:
        """What was declared."""
        return registry.spec(self.kind, self.component)

    @pytest.fixture
    def target(self, registry: Registry) -> type[Any]:
        """The component's class."""
        return registry.load(self.kind, self.component)

    @pytest.fixture
    def created(self, registry: Registry) -> Any:
        """The component, made from `options`."""
        return registry.create(self.kind, self.component, self.options)


def _copy(function: FunctionType) -> FunctionType:
    """A function of its own, so that marking it leaves the suite it came from alone."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__dict__.update(function.__dict__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = function.__annotations__
    copy.pytestmark = list(getattr(function, "pytestmark", []))  # type: ignore[attr-defined]
    return copy
