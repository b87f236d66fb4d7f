"""A source for pydantic-settings, which `pip install coffer-client[pydantic]` brings along."""

from __future__ import annotations

from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from .settings import Settings
from .values import plain


class CofferSource(PydanticBaseSettingsSource):
    """The values of a collection. A field `database_url` has the key `database_url` or `database-url`."""

    def __init__(self, settings_cls: type[BaseSettings], settings: Settings, collection: str) -> None:
        super().__init__(settings_cls)
        self._settings, self._collection = settings, collection

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        name = field.alias or field_name
        for key in (name, name.replace("_", "-")):
            item = self._settings.item(self._collection, key)
            if item.is_set:
                return plain(self._settings.secret(self._collection, key) if item.type == "secret" else item.value), name, False
        return None, name, False

    def __call__(self) -> dict[str, Any]:
        found = (self.get_field_value(field, name) for name, field in self.settings_cls.model_fields.items())
        return {name: value for value, name, _ in found if value is not None}
