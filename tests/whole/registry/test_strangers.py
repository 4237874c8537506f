"""A malformed distribution that no one admitted stops no command."""

import sys

import pytest

from dpcore.registry.installations import GROUP, installed
from dpcore.registry.kinds import LEARNER
from dpcore.registry.registry import Registry

METADATA = "Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n"
POINTS = f"[{GROUP}]\nstranger = stranger.plugin\n"

FILES = {
    "direct url no json": {"direct_url.json": "{"},
    "direct url a list": {"direct_url.json": "[1]"},
    "direct url not text": {"direct_url.json": b"\xff\xfe"},
    "direct url a number": {"direct_url.json": '{"url": 3}'},
    "no name": {"METADATA": "Metadata-Version: 2.1\nVersion: 1.0\n"},
    "no version": {"METADATA": "Metadata-Version: 2.1\nName: stranger\n"},
    "no metadata": {"METADATA": None},
    "binary metadata": {"METADATA": bytes(range(256))},
    "no section": {"entry_points.txt": "stranger = stranger.plugin\n"},
    "no value": {"entry_points.txt": f"[{GROUP}]\nstranger\n"},
    "no name of a point": {"entry_points.txt": f"[{GROUP}]\n= x\n"},
    "binary points": {"entry_points.txt": b"[dpcore.plugins]\n\xff = \xfe\n"},
    "an odd value": {"entry_points.txt": f"[{GROUP}]\nstranger = ???\n"},
}


@pytest.mark.parametrize("spoiled", FILES.values(), ids=FILES)
def test_a_malformed_distribution_disturbs_nobody(tmp_path, monkeypatch, spoiled):
    info = tmp_path / "stranger-1.0.dist-info"
    info.mkdir()
    for name, content in {"METADATA": METADATA, "entry_points.txt": POINTS, **spoiled}.items():
        if content is not None:
            raw = content if isinstance(content, bytes) else content.encode()
            (info / name).write_bytes(raw)
    before = {plugin.name for plugin in installed()}
    monkeypatch.syspath_prepend(tmp_path)
    assert str(tmp_path) in sys.path
    assert before <= {plugin.name for plugin in installed()}
    registry = Registry.default()
    assert registry.component(LEARNER, "linear.staged_gradient")
    with pytest.raises(Exception, match="no admitted plugin provides"):
        registry.component(LEARNER, "stranger.learner")
