"""What the page asks about a result it shows: one door, every request checked, every answer plain JSON or one sentence.

    ask({"question": "token", "key": ..., "token": 7}) -> {"reads": ..., "read_by": ..., "total": ...} or {"error": "One sentence."}

The functions that the browser calls have no queue before them, so what takes long goes through `Slots`; a test or a ranking works a
second at a time and is asked again until it is done.
"""

import base64
import logging
import secrets
import threading
from collections import OrderedDict
from typing import Any

import torch

from vitdemo import answers, surgery, takehome
from vitdemo.checkpoint import Loaded
from vitdemo.explain import Explanation, describe, untrained
from vitdemo.images import Input
from vitdemo.payload import payload
from vitdemo.ui import fields, testing, words
from vitdemo.ui.fields import RequestError
from vitdemo.ui.results import Gone, Kept, Results
from vitdemo.ui.slots import Busy, Slots

log = logging.getLogger(__name__)
TWINS = 2                                       # untrained models that are kept
