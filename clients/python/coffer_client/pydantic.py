"""A source for pydantic-settings, which `pip install coffer-client[pydantic]` brings along."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from .settings import Settings
from .values import plain


class CofferSource(PydanticBaseSettingsSource):
    """The values of a collection. A field `database_url` has the key `database_url` or `database-url`; one with an alias has that."""

    def __init__(self, settings_cls: type[BaseSettings], settings: Settings, collection: str) -> None:
        super().__init__(settings_cls)
        self._settings, self._collection = settings, collection

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        alias = field.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        names = [name for name in choices if isinstance(name, str)]
        if not names or self.config.get("populate_by_name") or self.config.get("validate_by_name"):
            names.append(field_name)
        for key in (key for name in names for key in (name, name.replace("_", "-"))):
            item = self._settings.item(self._collection, key)
            if item.is_set:
                return plain(self._settings.secret(self._collection, key) if item.type == "secret" else item.value), names[0], False
        return None, names[0], False

    def __call__(self) -> dict[str, Any]:
        found = (self.get_field_value(field, name) for name, field in self.settings_cls.model_fields.items())
        return {name: value for value, name, _ in found if value is not None}
