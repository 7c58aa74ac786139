"""Runs a script in the virtual environment that clients/setup.sh made, whatever python started it."""

import os
import sys
from pathlib import Path

VENV = Path(__file__).resolve().parent / ".venv"


def enter():
    """Starts the script over inside the environment, unless grpc is there already."""
    try:
        import grpc  # noqa: F401
        import grpc_status  # noqa: F401
        import grpc_tools  # noqa: F401
        return
    except ImportError:
        pass
    python = VENV / "bin" / "python"
    if Path(sys.prefix) == VENV or not python.exists():
        sys.exit("grpcio is not installed here: run clients/setup.sh first")
    os.execv(python, [str(python), *sys.argv])
