"""Names of files that people take home: plain letters, digits and hyphens, whatever the title says."""

import re


def plain(text: str, most: int = 40) -> str:
    """`text` as part of a file's name, at most `most` characters; empty where nothing of it can stay."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:most].strip("-")
