"""Links to the pages for users, which are a site of their own beside this one."""

from __future__ import annotations

import re
from typing import Any

LINK = re.compile(r"\[([^]]+)\]\(((?:\.\./)+)\.\./docs/([\w-]+)\.md(#[\w-]+)?\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """[text](../../docs/mvp.md) -> ../site/mvp.html, seen from the built page."""
    return LINK.sub(lambda m: f'<a href="{m[2]}site/{m[3]}.html{m[4] or ""}">{m[1]}</a>', markdown)
