"""The verification programs work with one generated module, made once from the specs."""

from tests.support.repository import fresh_module, generated

__all__ = ["fresh_module", "generated"]
