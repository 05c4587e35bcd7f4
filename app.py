"""Starts the page: `python app.py`. Settings come from the environment, see README."""

import argparse
import contextlib
import os
import signal
import sys
import tempfile

# read when gradio is imported, and when the page is built: nothing is sent home, and no table of the last 10,000 events, which nobody may
# see here, is kept and worked out anew at each of them
for name, value in (("GRADIO_ANALYTICS_ENABLED", "False"), ("GRADIO_ANALYTICS_MAX_EVENTS", "1"), ("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(10**9))):
    os.environ.setdefault(name, value)

from vitdemo import ending, heap, settings  # know no torch

if settings.lends(os.environ):                                    # a Space that lends a GPU; there the lender comes before torch
    import spaces  # noqa: F401


def main() -> int:
    parser = argparse.ArgumentParser(description="See how a Vision Transformer looks at a picture.")
    parser.add_argument("--checkpoint", help="what to show instead of the model in the box: a published one's name, a file, user/repo")
    parser.add_argument("--heads", type=int, help="attention heads of --checkpoint, where nothing says how many")
    parser.add_argument("--host", help="address to listen on (default: this computer only; 0.0.0.0 for the whole network)")
    parser.add_argument("--port", type=int, help="default: the first free one from 7860 on")
    parser.add_argument("--no-browser", action="store_true", help="do not open the page in a browser")
    args = parser.parse_args()
    if args.checkpoint:
        os.environ["VITDEMO_CHECKPOINT"] = args.checkpoint
    if args.heads is not None:
        os.environ["VITDEMO_HEADS"] = str(args.heads)
    heed_signals()
    heap.share()
    with tempfile.TemporaryDirectory(prefix="vitdemo-uploads-", ignore_cleanup_errors=True) as uploads:
        os.environ.setdefault("GRADIO_TEMP_DIR", uploads)         # of this page alone; Gradio's own default is shared
        return serve(args)


def heed_signals() -> None:
    """Whoever ends the program, at its terminal or from outside, has its runs stopped and its uploads deleted on the way out."""
    heeded = ending.signals()

    def leave(number: int, _: object) -> None:
        for other in heeded:                                      # a second one would cut short what the first one began
            signal.signal(other, signal.SIG_IGN)
        sys.exit(130 if number == signal.SIGINT else 0)

    for number in heeded:
        signal.signal(number, leave)


def serve(args: argparse.Namespace) -> int:
    """Build the page and answer until somebody ends the program."""
    import torch

    from vitdemo import loading
    from vitdemo.ui import build_app, launch_settings

    try:
        app = build_app(loading.shown())
        public = settings.read().public
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    torch.set_num_threads(settings.training_threads())            # one core is left to others
    app.scheduler.start()
    try:
        app.blocks.launch(server_name=args.host, server_port=args.port, inbrowser=not (args.no_browser or public) and sys.stdout.isatty(),
                          **launch_settings())
    except (OSError, OverflowError):                              # taken, forbidden, or no port number at all
        print(f"the page cannot be served at {args.host or 'this computer'}, port {args.port or 'from 7860 on'}: choose another --port", file=sys.stderr)
        return 1
    finally:
        app.scheduler.close()
    return 0


def ended() -> int:
    """The code that `main` ends with, by itself or by a signal."""
    try:
        return main()
    except SystemExit as ending:
        return ending.code


if __name__ == "__main__":
    code = ended()
    for stream in filter(None, (sys.stdout, sys.stderr)):         # without a console there are none
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)                                                # an analysis in a thread would be waited for, and a browser that is connected
