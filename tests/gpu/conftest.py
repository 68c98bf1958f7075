"""Tests on a real GPU: taken along where there is one, left out elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from opgen.runtime.devices.cuda_driver import cuda_available

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a CUDA device")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.gpu)
    if ours and not cuda_available():
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]
