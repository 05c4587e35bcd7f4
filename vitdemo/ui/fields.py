"""What a page, or anyone who poses as one, writes into a request: every field checked, every refusal one sentence."""

import functools
import logging
import math
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from vitdemo import words
from vitdemo.explain import Explanation
from vitdemo.features import PARTS
from vitdemo.ui.upload import inside_uploads

LOG = logging.getLogger(__name__)
KINDS = ("attention", "rollout", "relevance", "mean attention", "occlusion")                    # maps of what matters, which can be tested
FEATURES = ("similarity", "colours", "norms")                               # and views of what the model makes of the patches
FUSIONS = ("mean", "min", "max")


Request = dict[str, Any]                        # what a page asks
Answer = dict[str, Any]                         # and what it is told


class RequestError(ValueError):
    """A request that cannot be answered as it is; the message is one sentence that names the field."""


class Later(RequestError):
    """A request that will be answered otherwise in a while, as it is."""


def whole(fields: dict[str, Any], name: str, most: int, *, least: int = 0, default: int | None = None) -> int:
    """A whole number from `least` to `most`; `default` where the field is missing or null."""
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise RequestError(f"the field {name!r} must be a whole number from {least} to {most}, not {brief(value)}")
    return value


def number(fields: dict[str, Any], name: str, most: float, *, least: float = 0, default: float | None = None) -> float:
    """A number from `least` to `most`; `default` where the field is missing or null."""
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:        # NaN is in no range
        raise RequestError(f"the field {name!r} must be a number from {least:g} to {most:g}, not {brief(value)}")
    return float(value)


def choice(fields: dict[str, Any], name: str, choices: Sequence[str], *, default: str | None = None) -> str:
    """One of `choices`; `default` where the field is missing or null."""
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or value not in choices:
        raise RequestError(f"the field {name!r} must be one of {', '.join(choices)}, not {brief(value)}")
    return value


def flag(fields: dict[str, Any], name: str, *, default: bool) -> bool:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise RequestError(f"the field {name!r} must be true or false, not {brief(value)}")
    return value


def text(fields: dict[str, Any], name: str, most: int, *, default: str | None = None) -> str:
    """One line of at most `most` characters, without those that cannot be seen or turn the writing direction; `default` where the field
    is missing or null."""
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or len(value) > most:
        raise RequestError(f"the field {name!r} must be a text of at most {most} characters, not {brief(value)}")
    return plain(value)


def plain(value: Any) -> str:
    """A text in one line; nothing for what is no text."""
    return " ".join("".join(c if c.isprintable() else " " for c in value).split()) if isinstance(value, str) else ""


def run(fields: dict[str, Any], name: str = "run") -> str:
    """What may be the id of a run; whether there is one is for the scheduler to say."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise RequestError(f"the field {name!r} must be the id of a run, not {brief(value)}")
    return value


def listed(fields: dict[str, Any], name: str, most: int) -> list[Any]:
    """A list of at most `most` things of any kind; empty where the field is missing or null."""
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > most:
        raise RequestError(f"the field {name!r} must be a list of at most {most}, not {brief(value)}")
    return value


def runs(fields: dict[str, Any], name: str, most: int) -> list[str]:
    """At most `most` ids of runs, each once; empty where the field is missing or null."""
    return list(dict.fromkeys(run({name: value}, name) for value in listed(fields, name, most)))


def uploaded(fields: dict[str, Any], name: str) -> str:
    """The path of a file that was really uploaded to this page; nothing else is ever opened."""
    path = fields.get(name)
    if not isinstance(path, str) or len(path) > 4096:
        raise RequestError(f"the field {name!r} must be the path of an uploaded file, not {brief(path)}")
    try:
        return inside_uploads(path)
    except gr.Error:
        raise RequestError(words.NOT_UPLOADED) from None


def uploads(fields: dict[str, Any], name: str, most: int) -> list[str]:
    """The paths of at most `most` uploaded files; empty where the field is missing or null."""
    return [uploaded({name: value}, name) for value in listed(fields, name, most)]


def patches(fields: dict[str, Any], name: str, count: int) -> tuple[int, ...]:
    """A list of patches, each a whole number below `count`; empty where the field is missing or null."""
    value = fields.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > count:
        raise RequestError(f"the field {name!r} must be a list of at most {count} patches, not {brief(value)}")
    for patch in value:
        if isinstance(patch, bool) or not isinstance(patch, int) or not 0 <= patch < count:
            raise RequestError(f"the field {name!r} must hold patches from 0 to {count - 1}, not {brief(patch)}")
    return tuple(value)


def permutation(fields: dict[str, Any], name: str, count: int) -> tuple[int, ...] | None:
    """A list that names each of `count` patches once; None where the field is missing or null."""
    listed = patches(fields, name, count)
    if fields.get(name) is None:
        return None
    if len(set(listed)) != count:
        raise RequestError(f"the field {name!r} must hold each of the {count} patches once, not {len(set(listed))} of them")
    return listed


def klass(fields: dict[str, Any], explanation: Explanation) -> int:
    """The number of a class of the model."""
    known = len(explanation.classes)
    if not known:
        raise RequestError("this model has no classes: it was trained without a head, so nothing speaks for one")
    return whole(fields, "klass", known - 1)


def view(fields: dict[str, Any], explanation: Explanation, kinds: Sequence[str] = KINDS) -> dict[str, Any]:
    """The view of a request, one of `kinds`, with every field in range; those that do not matter for its kind are at their defaults, so
    that two requests for the same map give equal views."""
    value = fields.get("view")
    if not isinstance(value, dict):
        raise RequestError(f"the field 'view' must be an object that says which map is meant, not {brief(value)}")
    layers, heads = explanation.attention.shape[:2]
    kind = choice(value, "kind", kinds)
    clean = {"kind": kind, "direction": "reads", "token": None, "layer": layers - 1, "head": "mean", "up_to": layers, "fusion": "mean",
             "discard": 0.0, "klass": None}
    if kind == "attention":
        clean["direction"] = choice(value, "direction", ("reads", "read_by"), default="reads")
        clean["token"] = _token(value, explanation, clean["direction"])
        clean["layer"] = whole(value, "layer", layers - 1, default=layers - 1)
        named = value.get("head") is None or isinstance(value["head"], str)
        clean["head"] = choice(value, "head", FUSIONS, default="mean") if named else whole(value, "head", heads - 1)
    elif kind == "rollout":
        clean["up_to"] = whole(value, "up_to", layers, least=1, default=layers)
        clean["fusion"] = choice(value, "fusion", FUSIONS, default="mean")
        clean["discard"] = number(value, "discard", 0.99, default=0.0)
    elif kind in ("relevance", "occlusion"):
        clean["klass"] = klass({"klass": value.get("klass", fields.get("klass"))}, explanation)
    elif kind == "similarity":
        clean["token"] = token(value, explanation)
    elif kind == "norms":
        clean["layer"] = whole(value, "layer", layers - 1, default=layers - 1)
    elif kind == "colours":
        clean["part"] = choice(value, "part", PARTS, default=PARTS[0])
    return clean


def token(fields: dict[str, Any], explanation: Explanation) -> int | None:
    """The number of a token; None for the reader."""
    return None if fields.get("token") is None else whole(fields, "token", explanation.tokens - 1)


def _token(value: dict[str, Any], explanation: Explanation, direction: str) -> int | None:
    """The token a view is about: None for the reader, which is a token of its own unless the model averages its patches."""
    class_token = explanation.loaded.config.pool == "cls"
    if value.get("token") is None and direction == "read_by" and not class_token:
        raise RequestError("nobody reads the average patch: it is no token, so choose one")
    named = token(value, explanation)
    return None if class_token and named == 0 and direction == "reads" else 0 if named is None and direction == "read_by" else named


def unexpected(log: logging.Logger, what: str, text: str) -> str:
    """The sentence `text` about an exception that nobody foresaw, with the number under which the log has its trace."""
    number = secrets.token_hex(3)
    log.exception("%s %s failed", what, number)
    return text.format(number=number)


def refused(error: ValueError) -> bool:
    """Whether an error is a refusal of the program's own: a sentence without a path. What Python or a library says is not for visitors."""
    return type(error).__module__.partition(".")[0] == "vitdemo"


def answering(door: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
    """`door`, a function that a component's front end calls, which never raises."""
    @functools.wraps(door)
    def answer(request: Request) -> Answer:
        try:
            return door(request)
        except Exception:
            return {"error": unexpected(LOG, "server function", words.LAB_UNEXPECTED)}

    return answer


def sentence(text: str) -> str:
    """An error's or a verdict's text as the page shows it: with a full stop, and a capital unless it begins with the name of something."""
    first = text.split(" ", 1)[0]
    return (text if set("/._") & set(first.rstrip(".")) else text[:1].upper() + text[1:]) + ("" if text.endswith((".", "!", "?")) else ".")


def brief(value: Any) -> str:
    """A value as a refusal quotes it: short, whatever was sent."""
    if isinstance(value, (list, dict)):
        return f"a {'list' if isinstance(value, list) else 'object'} of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**12:
        return "a huge number"
    if isinstance(value, float) and not math.isfinite(value):
        return "a number that is not finite"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    return f"{value!r:.40}"
