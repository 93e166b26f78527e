"""The version of fnad, for those files that `fnad/__init__.py` itself imports."""

VERSION = "0.1.0"
