"""Fresh interpreters, to see what an import costs."""

import os
import subprocess
import sys

HEAVY = ("torch", "torchaudio", "numpy", "triton", "av", "tokenizers", "sentencepiece", "safetensors")
"""Packages that wait until they are used."""


def heavy_modules_after(code: str) -> list[str]:
    """Which of the heavy packages a fresh interpreter has imported after running `code`. Fails when the code does."""
    report = f"import sys; print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1].split()
