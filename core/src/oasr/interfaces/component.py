"""What every configurable component shares: a model of its options that imports without torch."""

from pydantic import BaseModel, ConfigDict


class ComponentConfig(BaseModel):
    """Options of one component. Unknown keys are refused, instances do not change, and docstrings of the
    fields are what `oasr config init` prints."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
