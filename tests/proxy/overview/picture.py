"""``python -m tests.proxy.overview.picture URL [FILE]``: the page of a running proxy as a picture."""

import argparse
import asyncio
from pathlib import Path

from tests.proxy.overview.browser import PHONE, visiting

_WIDE = (1200, 800)


def main() -> None:
    """Write the file; nothing of the page may be missing, and nothing may be in the browser's console."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of the proxy, or of its operators' address")
    parser.add_argument("file", nargs="?", type=Path, default=Path("docs/images/ui.png"))
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--phone", action="store_true")
    arguments = parser.parse_args()
    arguments.file.parent.mkdir(parents=True, exist_ok=True)
    size = PHONE if arguments.phone else _WIDE
    complaints = asyncio.run(picture(arguments.url.rstrip("/"), arguments.file, size, dark=arguments.dark))
    if complaints:
        raise SystemExit("\n".join(complaints))


async def picture(url: str, file: Path, size: tuple[int, int], *, dark: bool) -> list[str]:
    """Take it of the whole page; what the browser complained about."""
    async with visiting(url, size=size, dark=dark) as visit:
        await visit.page.get_by_role("region", name="State of the deployment").wait_for()
        await visit.page.screenshot(path=str(file), full_page=True)
        return visit.complaints


if __name__ == "__main__":
    main()
