"""What the page says, in one place: short, plain English, the same words everywhere.

First the server's sentences, then FRONT, the words of the front ends, which reach their scripts as WORDS (`vitdemo.front`). There "{name}" is
filled in by `phrase` (ui/shared/00-make.js), and "{n|picture|pictures}" is the first word where n is 1 and the second where it is not.
"""

TITLE = "vitdemo"
TAGLINE = "See how a Vision Transformer looks at a picture, and test what every attention map claims."

PRIVACY = "Your picture goes only to the computer that runs this page. It is used for the answer and deleted within an hour."
UPLOAD = "Drop a picture here\n- or paste, or click to choose -"
EXAMPLES = "Or pick an example"
RANDOM_TEST = "A random test picture"

PRESENT = "Present"
PRESENT_KEYS = ("One idea per screen, for a projector. Keys: \u2192 and \u2190, space or a clicker step; up and down the layer; [ and ] the head; n the next picture; "
                "b black; f full screen; Esc leaves.")

NO_PICTURE = "Drop, paste or pick a picture to see what the model makes of it."
NO_TEST_PICTURES = "The test pictures are not on this computer: they come with the first training run."
NOT_AN_UPLOAD = "That picture did not arrive as an upload: please choose the file again."
CROWDED = "Many people are asking at the same time, and the line is full: please choose the picture again in a moment."
NOT_UPLOADED = "That file did not arrive as an upload: please choose it again."
NO_SUCH_MODEL = "There is no such model: give \"box\" or the id of a training run that has weights."
UNEXPECTED = "Something unexpected went wrong (number {number} in the server's log): please try another picture."

SIGN_IN = "This page has a password. Type any name, and the password that you were given."
NO_STATE = "A view is not kept under an address: use \"Copy link to this view\"."
ELSEWHERE = "Nothing is fetched from elsewhere."
NO_LENGTH = "The request does not say how long it is."
TOO_LONG = "The request is too long."
UPLOADS_FULL = "There is no room for uploads now: please try again in a minute, or send a smaller file."

MODEL_IN_THE_BOX = "The model in the box"
MODEL_NAMED = "The model {name}"
A_MODEL = "A model of yours"
MODEL_OF_RUN = "The model you trained"
MODEL_RECORDED = "The model of the recorded run"
NO_CLASSES = "none: it was trained without a head, so it names nothing"
FETCH_CANCELLED = "The download was stopped; what had arrived is kept for the next time."
RUN_MODEL_GONE = "The weights of that run are no longer there: train again, or go on with the model in the box."

TRAIN_OFF = "Training is switched off on this host. Run the program on your own computer to train (see About)."
NOT_LOCAL_CIFAR10 = "These pictures are not on this computer yet: the first run fetches them (170 MB)."
NOT_LOCAL_MNIST = "These pictures are not on this computer yet: the first run fetches them (12 MB)."
LAB_UNEXPECTED = "Something unexpected went wrong (number {number} in the server's log): please try again."
ONLY_MINUTES = "On this host runs are counted in minutes."
RECORDED_STAYS = "The recorded run stays as it is: it can be watched, opened and downloaded."
NO_RECORDED = "This copy of the program holds no recorded run."
NO_FILM = "There is no film yet: the first pictures are taken when the training begins."
NO_SUBJECTS = "This film shows no pictures."
MEASURING = "Timing a few training steps on this computer."
NO_VERDICT = "Not every run of this race reached its end, so nobody has won: run it again."
DISK_FULL = "The file could not be written: the server's disk is full or its folder is not writable."
NO_MAPS = "This network has no attention: there are no maps to show."
NO_WEIGHTS = "This run has no weights yet: they are kept from its first look at the validation pictures on."
OWN_PICTURES = "your own pictures"

ABOUT = """
## What this is

A Vision Transformer (Dosovitskiy et al. 2021, *An Image is Worth 16x16 Words*) written from scratch, with a page to look inside it.
A picture is cut into patches; each patch becomes a *token*; a *class token* (CLS) joins them; in every *layer*, several *heads* decide how much each
token reads from each other token. The maps on the Explore tab show what a token reads: **where a head looks, not why**. A bright patch is no
proof that the answer depends on it: that is what *Test this map* is for.
"""

PRIVACY_LONG = """
## Privacy

What you send goes only to the computer that runs this page; who runs that computer can read it. The page loads nothing from anywhere else, counts
nobody and sets no cookie (but one, where a password is asked for, that says you gave it).

- **Files you send** (pictures, .zip files, checkpoints) are deleted within an hour. What is kept longer are the copies named next.
- **Your own sets** hold small copies of your pictures, {short} pixels on the shorter side. Pictures that you collect on the page are made that small
  before they leave your browser; a .zip travels whole. Sets {sets}
- **A training run** keeps its weights, its curves and its film; of the film's pictures copies of up to {side} pixels; and of the pictures it was
  checked and tested with small ones, to show what it got right and wrong. Those stay with the run also when the set they came from is deleted. A
  checkpoint that you load is kept as a run. Runs {runs}
- **Who sees what:** runs and sets have long random names; whoever knows one can see, use and delete what it stands for. No page lists those of others.
- **Your browser** remembers, in its local storage: the names of your runs and of your own sets with their titles, which run was shown last, the
  race you began with your vote, and a random secret by which the program knows that two tabs are the same browser, and how much room its
  sets take. Clearing the site's data in the
  browser removes all of it.
"""
KEPT_HOURS = "are deleted {hours:g} hours after {since}, or when you delete them."
KEPT = "stay on this computer until you delete them."

# by front end (the folder's name in ui/) and name; a name stands in one script or page, or in several where they say the same
FRONT: dict[str, dict[str, object]] = {
    # all front ends
    "shared": {
    },
    # Explore
    "viewer": {
    },
    # Train
    "lab_front": {
    },
    # the bar in which a model is chosen
    "model_front": {
    },
}
