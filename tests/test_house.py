"""The rules of the house: which file may import which, and where gradio may stand."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "vitdemo"

# a file may import only from files above it in this list, and only what its row names
MAY_IMPORT = {
    "settings": set(), "heap": set(), "spin": set(), "ending": set(), "terminal": set(), "atomic": set(), "chance": set(), "filenames": set(), "config": set(), "presets": {"config"}, "plan": {"config", "presets"}, "model": {"config"}, "attention": set(), "geometry": set(), "lean": set(), "formats": {"lean"}, "images": {"config", "formats", "geometry", "settings"}, "weightfile": set(),
    "naming": {"weightfile"}, "foreign": {"config", "naming", "weightfile"}, "assembly": {"config", "model", "weightfile"}, "checkpoint": {"assembly", "atomic", "config", "model", "weightfile", "foreign"},
    "looking": {"checkpoint", "geometry"}, "features": {"model"}, "zoo": {"config"}, "transfer": set(), "huggingface": {"transfer", "zoo"}, "hub": {"atomic", "huggingface", "terminal", "transfer", "zoo"},
    "processors": {"config", "weightfile"}, "architectures": {"weightfile"}, "repository": {"architectures", "config", "foreign", "processors", "weightfile"},
    "loading": {"checkpoint", "hub", "repository", "settings", "terminal", "zoo"},
    "embedding": {"model"}, "faithfulness": {"checkpoint"}, "surgery": {"checkpoint", "model"},
    "explain": {"attention", "checkpoint", "config", "geometry", "images", "looking", "model"}, "payload": {"config", "explain", "geometry"},
    "answers": {"checkpoint", "embedding", "explain", "faithfulness", "features", "payload"}, "words": set(), "front": {"words"}, "archive": {"images"}, "class_folders": {"archive", "config", "images"},
    "unpacking": {"archive", "class_folders", "images"}, "picturesets": {"archive", "atomic", "class_folders", "images", "unpacking"},
    "downloads": {"archive", "class_folders", "settings", "transfer"}, "data": {"archive", "atomic", "class_folders", "downloads", "settings"},
    "figures": set(), "report": {"answers", "explain", "front", "payload"}, "takehome": {"answers", "explain", "figures", "filenames", "payload", "report"},
    "explain_command": {"loading", "looking", "checkpoint", "explain", "figures", "report", "takehome"}, "augment": set(),
    "jsonfile": {"atomic"}, "runstatus": set(), "runfolder": {"filenames", "jsonfile", "runstatus"}, "child": {"runfolder"}, "claims": {"jsonfile", "runfolder"}, "shelf": {"atomic", "runfolder"},
    "dispatch": {"child", "claims", "runfolder", "shelf"}, "runs": {"atomic", "child", "dispatch", "runfolder", "shelf"},
    "races": {"chance", "config", "plan", "runfolder"},
    "evaluate": {"loading", "chance", "checkpoint", "config", "data", "images"},
    "mistakes": {"atomic"}, "film": {"attention", "config", "embedding", "evaluate", "explain", "images", "model", "payload", "runfolder"}, "filmsheet": {"figures", "geometry"}, "filmstrip": {"figures", "filmsheet"},
    "distributed": {"settings"}, "cnn": {"config", "model"}, "muon": set(), "budget": {"config"}, "batches": {"augment", "budget", "config", "data", "images"}, "precision": {"model"}, "optimizers": {"config", "muon", "precision"},
    "train": {"batches", "budget", "config", "data", "distributed", "evaluate", "muon", "optimizers", "precision"},
    "beginning": {"loading", "checkpoint", "cnn", "config", "data", "model", "plan", "settings"},
    "recorder": {"atomic", "budget", "checkpoint", "config", "data", "evaluate", "film", "mistakes", "model", "plan", "precision", "runs", "settings", "terminal", "train"},
    "teacher": {"checkpoint", "config", "precision"}, "trainer": {"batches", "beginning", "budget", "checkpoint", "data", "distributed", "jsonfile", "plan", "recorder", "runs", "settings", "teacher", "terminal", "train"},
    "train_command": {"ending", "heap", "loading", "checkpoint", "atomic", "film", "beginning", "config", "data", "distributed", "downloads", "images", "plan", "presets", "runs", "settings", "terminal", "trainer"},
    "pace": {"beginning", "budget", "config", "data", "distributed", "evaluate", "plan", "train"},
}


def imports(source: str) -> tuple[set[str], set[str]]:
    """(modules of the package, other top-level packages) that a file imports; what a `main` or a type checker imports does not count."""
    own, foreign = set(), set()
    tree = ast.parse(source)
    skipped = {inner for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "main"
               or isinstance(node, ast.If) and ("__name__" in ast.dump(node.test) or "TYPE_CHECKING" in ast.dump(node.test)) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"vitdemo.{a.name}" for a in node.names] if node.module == "vitdemo" else [node.module or ""]
        for name in names if node not in skipped else []:
            head, *rest = name.split(".")
            if head != "vitdemo":
                foreign.add(head)
            elif rest:
                own.add(rest[0])
    return own, foreign


def breaches(name: str, source: str) -> list[str]:
    own, foreign = imports(source)
    wrong = [f"{name} imports {other}" for other in sorted(own - MAY_IMPORT[name])]
    return wrong + [f"{name} imports gradio"] * ("gradio" in foreign)


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem)
def test_a_file_imports_only_what_its_row_allows_and_never_gradio(path):
    if path.stem != "__init__":
        assert breaches(path.stem, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("source", ["import gradio", "from gradio import Blocks", "from vitdemo.train import fit", "from vitdemo import runs",
                                    "def helper():\n    from vitdemo import ui"])
def test_a_breach_of_the_rows_is_noticed(source):
    assert breaches("model", source) != []


def test_arrows_go_one_way():
    order = list(MAY_IMPORT)
    upward = [(name, other) for name in order for other in MAY_IMPORT[name] if order.index(other) >= order.index(name)]
    assert upward == []


def test_readmes_table_names_every_file_below_those_that_it_imports():
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("| file | one responsibility |")[1].split("\n\n")[0]
    order = [name for row in table.split("\n") for name in re.findall(r"`(\w+)\.py`", row.split(" | ")[0])]
    assert sorted(order) == sorted(MAY_IMPORT)
    assert [(name, other) for name in order for other in MAY_IMPORT[name] if order.index(other) >= order.index(name)] == []


def test_no_file_holds_a_machines_path_and_none_is_named_utils():
    for path in [*PACKAGE.rglob("*.py"), ROOT / "app.py", ROOT / "README.md"]:
        assert path.stem not in ("utils", "helpers", "common")
        assert "/work/" not in path.read_text(encoding="utf-8"), path.name


def test_no_test_changes_the_clock_or_the_system_that_a_running_page_goes_by():
    for path in Path(__file__).parent.glob("*.py"):
        assert not re.search(r"setattr\((\w+\.)*(time, |os, \"name\")", path.read_text(encoding="utf-8")), f"{path.name}: `pretend` changes it for one module"


def test_the_top_level_holds_only_what_it_should():
    import subprocess

    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")
    tops = {name.split("/")[0] for name in listed if name and not name.startswith(".")}
    assert "README.md" in tops or not (ROOT / ".git").exists()
    assert tops <= {"README.md", "requirements.txt", "app.py", "vitdemo", "checkpoints", "tests"}
