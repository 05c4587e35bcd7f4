"""The password of a page that is not for everybody: Gradio asks for it, here it is compared, and guessing is made slow."""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)
PENALTY = 0.5                                   # seconds that a wrong guess holds up those behind it
WAITING = 20                                    # that stand in line; who comes then is told no, as for a wrong guess


def checker(password: str, penalty: float = PENALTY) -> Callable[[str, str], Awaitable[bool]]:
    """What Gradio asks whether a visitor may come in: any name will do. All guesses stand in one line, whoever makes them, since many may
    come at once and from many addresses; a right one holds nobody up."""
    line, inside = asyncio.Lock(), [0]
    right = password.encode()

    async def may_enter(name: str, given: str) -> bool:
        if inside[0] >= WAITING:
            return False
        inside[0] += 1
        try:
            async with line:
                if hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right):
                    return True
                log.warning("a wrong password was given")                   # not which, nor the name: people type one for the other
                await asyncio.sleep(penalty)
                return False
        finally:
            inside[0] -= 1

    return may_enter
