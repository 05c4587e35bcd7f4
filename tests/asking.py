"""Questions about one result, as the page asks them."""

import json

from vitdemo.ui.questions import Questions
from vitdemo.ui.results import Results


class Page:
    """A visitor with one result: asks as the page does, and insists that every answer is JSON."""

    def __init__(self, explanation, results=None, box=None):
        self.results = Results() if results is None else results
        self.questions = Questions(self.results, box or explanation.loaded)
        self.key = self.results.keep(explanation)

    def ask(self, question, **fields):
        answer = self.questions.ask({"question": question, "key": self.key, **fields})
        json.dumps(answer, allow_nan=False)
        return answer

    def until_done(self, question, **fields):
        calls, answer = 0, {"done": 0, "total": 1}
        while answer["done"] < answer["total"]:
            answer, calls = self.ask(question, **fields), calls + 1
            assert "error" not in answer, answer
        return answer, calls
