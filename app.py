"""Starts the page: `python app.py`. Settings come from the environment, see README."""

import argparse
import os
import signal
import sys
import tempfile

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")        # read when gradio is imported


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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))         # so that runs are stopped and uploads deleted on the way out
    with tempfile.TemporaryDirectory(prefix="vitdemo-uploads-", ignore_cleanup_errors=True) as uploads:
        os.environ.setdefault("GRADIO_TEMP_DIR", uploads)         # of this page alone; Gradio's own default is shared
        return serve(args)


def serve(args: argparse.Namespace) -> int:
    """Build the page and answer until somebody ends the program."""
    import torch

    from vitdemo import loading, settings
    from vitdemo.ui import build_app, launch_settings

    try:
        app = build_app(loading.shown())
        public = settings.read().public
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:                                     # while a model is fetched
        return 130
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


if __name__ == "__main__":
    raise SystemExit(main())
