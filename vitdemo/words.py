"""What the page says, in one place: short, plain English, the same words everywhere.

First the server's sentences, then FRONT, the words of the front ends, which reach their scripts as WORDS (`vitdemo.front`). There "{name}" is
filled in by `phrase` (ui/shared/00-make.js), and "{n|picture|pictures}" is the first word where n is 1 and the second where it is not.
"""

TITLE = "vitdemo"
TAGLINE = "See how a Vision Transformer looks at a picture, and test what every attention map claims."

PRIVACY = "Your picture goes only to the computer that runs this page. It is used for the answers about it and deleted within an hour of the last one."
UPLOAD = "Drop a picture here\n- or paste, or click to choose -"
EXAMPLES = "Or pick an example"
RANDOM_TEST = "A random test picture"

PRESENT = "Present"
PRESENT_KEYS = ("One idea per screen, for a projector. Keys: \u2192 and \u2190, space or a clicker step; up and down the layer; [ and ] the head; n the next picture; "
                "b black; f full screen; Esc leaves.")

NO_PICTURE = "Drop, paste or pick a picture to see what the model makes of it."
NOT_HELD = "The server no longer has this picture: choose it again to see it through this model."
NO_TEST_PICTURES = "The test pictures are not on this computer: they come with the first training run."
NOT_AN_UPLOAD = "That picture is no longer on the server, or did not arrive as an upload: please choose the file again."
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
MODEL_TINY = "The tiny model in the box"
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
RACE_UNTIMED = ("This race gives both sides equally many steps, as many as this computer makes in the time, which cannot be found out while another "
                "run is going on: try again when that is over.")
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

- **Files you send** (pictures, .zip files, checkpoints) are deleted within an hour, and what was worked out about a picture, a copy
  of it among that, within an hour of your last question about it. What is kept longer are the copies named next.
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
        # where something is, and what it is called
        "head": "Head",
        "head_n": "head {n}",
        "layer_and_heads": "Layer {layer}, {heads}",
        "layer_of": "Layer {layer} of {all}",
        "heads_joined": {"mean": "mean of the heads", "min": "least of the heads", "max": "most of the heads"},
        "mean": "mean",
        "place": "row {row}, column {col}",
        "ninths": ["upper left", "upper middle", "upper right", "middle left", "centre", "middle right", "lower left", "lower middle", "lower right"],
        "class_n": "class {n}",
        "model_in_the_box": "the model in the box",
        "patch_filters": "Patch filters",
        "similarity_of_positions": "Similarity of positions",
        "list_and": "{list} and {last}",
        # controls
        "opacity": "Opacity",
        "colours": "Colours",
        "percent_n": "{n} percent",
        "attention_heads": "Attention heads",
        "cancel": "Cancel",
        "close": "Close",
        "more": "More",
        "model": "Model",
        "all_maps_keys": "All layers and heads. Arrow keys choose one.",
        # charts and colour scales
        "curve_from_to": "{name} from {first} to {last}",
        "colour_scale": "colour scale, from least to most: {colours}",
        "colours_from_to": {"cividis": "dark blue to yellow", "viridis": "violet to yellow", "gray": "black to white"},
        # a link to what is shown
        "link": "The link",
        "link_copied": "Copied the link to {what}.",
        "link_not_copied": "The browser lets no page copy here: copy the link from the field.",
        "link_frame": "It opens the page by itself, without the frame around it.",
        # files
        "kilobytes": "{n} kB",
        "megabytes": "{n} MB",
        "saved_as": "Saved as {name} ({size}).",
        "reading_file": "Reading {name} …",
        "file_too_large": "{name} has {size}; at most {most} can be sent here.",
        "file_not_sent": "{name} could not be sent: is it too large for this host, or the network gone?",
        # the server
        "asking": "Asking …",
        "server_silent": "The server does not answer: is the program still running, and the network there?",
        "server_away": "The server does not answer; trying again …",
        # the projector
        "projector": "Projector",
        "screen": "screen",
        "screen_of": "Screen {n} of {all}: {name}.",
        "screen_before": "Screen before",
        "screen_next": "Next screen",
        "full_screen": "Full screen",
        "full_screen_key": "Full screen (f)",
        "full_screen_refused": "The browser allows no full screen here.",
        "leave": "Leave",
        "leave_key": "Leave (Esc)",
        "keys_step": "← → step",
        "keys_black": "b black",
        "keys_next": "n next",
        "screen_black": "The screen is black. Any key brings it back.",
        "screen_back": "The screen is back.",
    },
    # Explore
    "viewer": {
        # the page
        "explore": "Explore a picture",
        "kinds_group": "What is shown",
        "picture_keys": "The picture with its map. Arrow keys choose a patch, question mark lists all keys.",
        "test_this": "Test this map",
        "test_this_hint": "Does the answer depend on what the map calls important? One click hides those patches and looks.",
        "heads_group": "All heads of the layer",
        "answer": "Answer",
        "glance": "The whole model at a glance",
        "wall_one": "one small map for every layer and head",
        "seen": "What the model sees",
        "look_deeper": "Look deeper",
        # what tokens are called, and what is asked about them
        "the_average_patch": "the average patch",
        "the_token": "the {name}",
        "the_patch": "the patch in {place}",
        "token_of_first": "{token} of the first picture",
        "about_token": {"reads": "what {token} reads", "read_by": "who reads {token}"},
        # the model and the server are asked
        "asking_share": "Asking the model: {share} …",
        "asking_model": "Asking the model …",
        "asking_other": "Asking for the other …",
        "another_picture": "Another picture is shown now.",
        "reload": "Reload the page",
        "program_renewed": "The program was renewed meanwhile: reload the page to go on.",
        "server_again": "The server answers again. If a picture that you chose is not shown, choose it again.",
        "server_anew_example": "The server was started anew and looks at this example again.",
        "server_anew": ("The server was started anew and no longer has this picture. What is shown stays; to ask more about it, please "
                        "upload it again."),
        # the kinds of maps
        "kinds": {
            "attention": {
                "name": "Attention",
                "line": "Attention: how much one token reads from every other, in one layer and head.",
                "more": ("Equation (6) of the paper, appendix A: softmax of queries times keys. Each row sums to 1. It misleads when read as a reason: "
                         "it shows where a head looks, not what it does with what it finds there, and a token may by then hold what it gathered "
                         "from others."),
            },
            "mean attention": {
                "name": "Mean attention",
                "line": "Mean attention: what the reader reads, averaged over all layers and heads.",
                "more": ("The simplest summary of all. It misleads because heads that do different things, and layers that read different things, are "
                         "poured together."),
            },
            "rollout": {
                "name": "Rollout",
                "line": "Rollout: attention followed through all layers up to the chosen one, as if information only flowed along it.",
                "more": ("Abnar and Zuidema 2020, Quantifying Attention Flow in Transformers: per layer (A + I) / 2, multiplied up. Discarding the "
                         "weakest weights follows Gildenblat's vit-explain. It misleads because it knows neither values, nor the MLPs, nor the class: "
                         "every class gets the same map."),
            },
            "relevance": {
                "name": "Class relevance",
                "line": "Class relevance: attention that speaks for one class, weighted by its gradient and added up over the layers.",
                "more": ("Chefer, Gur and Wolf, Generic Attention-model Explainability, ICCV 2021, equations (5) and (6): the positive part of gradient "
                         "times attention, mean over heads. It misleads because only what speaks for the class is kept, and a gradient tells about "
                         "small changes, not about removing a patch. Test it."),
            },
            "occlusion": {
                "name": "Occlusion",
                "line": "Occlusion: how much the class probability falls when one patch alone is hidden by the picture's mean colour.",
                "more": ("Zeiler and Fergus 2014, Visualizing and Understanding Convolutional Networks. Asks the model instead of reading its attention; "
                         "patches whose hiding raises the probability count as zero here. It misleads where two patches tell the same: hiding either "
                         "alone changes nothing."),
            },
            "similarity": {
                "name": "Similarity",
                "line": "Similarity: how alike the model finds one patch and all others. Click a patch.",
                "more": ("The cosine of the angle between two tokens' last hidden states: 1 the same direction, 0 nothing in common, -1 opposite (Caron "
                         "et al. 2021, DINO; Amir et al. 2021, Deep ViT Features as Dense Visual Descriptors). To look for a patch in a second picture, "
                         "pin this result, choose another picture and compare with the pinned one. It misleads because features also hold where a "
                         "patch lies, so that neighbours are alike; and where a model learned from labels only the token that its head reads had to "
                         "mean anything at the end."),
            },
            "colours": {
                "name": "Colours",
                "line": "Colours: the three directions in which the patches' features differ most, as red, green and blue. Like colours, like features.",
                "more": ("Principal components of the patches' last hidden states (Oquab et al. 2024, DINOv2, figures 1 and 9). Each runs from its least "
                         "patch to its most. The paper's foreground: patches on one side of zero on the first component, coloured by components of "
                         "their own. It misleads because three directions are few, a component's sign is free, which side is foreground is a guess "
                         "(here the side with less of the picture's edge), and colours can be compared only between pictures that are shown side by "
                         "side."),
            },
            "norms": {
                "name": "Norms",
                "line": "Norms: how long every token's vector is after a layer. Far longer patches than the others are called artifacts.",
                "more": ("Darcet et al. 2024, Vision Transformers Need Registers: large models that learned long keep what they know of the whole "
                         "picture in patches of plain background, whose vectors then are many times longer; registers are extra tokens that give it "
                         "another place. The authors set the limit by eye for each model (150 for DINOv2's ViT-g); here a patch counts from three times "
                         "the median patch of its layer on. It misleads because a length is no content: the norm before the next layer takes it away, "
                         "and in most models all tokens grow from layer to layer."),
            },
        },
        # titles of maps
        "title_rollout": "Rollout up to layer {layer}, {fusion} of the heads",
        "title_relevance": "What speaks for {klass}",
        "title_occlusion": "What {klass} loses when a patch is hidden",
        "title_mean": "Mean attention of all layers and heads",
        "title_norms": "Length after layer {layer} of {all}",
        "title_colours": {"all": "Feature colours", "foreground": "Feature colours of the foreground", "background": "Feature colours of the background"},
        "title_similarity": "Similarity to {token}",
        # one patch of a map in words
        "patch_weight": "{where}: weight {weight}, {times} times an even share (1/{tokens} = {even}).",
        "patch_of_class": {"relevance": "{where}: relevance {value}.", "occlusion": "{where}: the probability falls by {points} points."},
        "patch_of_class_times": {"relevance": "{where}: relevance {value}, {times} times the average patch.",
                                 "occlusion": "{where}: the probability falls by {points} points, {times} times the average patch."},
        "patch_similarity": "{where}: similarity {value} to {token}.",
        "patch_length": "{where}: length {length}.",
        "patch_length_times": "{where}: length {length}, {times} times the median patch.",
        "patch_artifact": "{where}: length {length}, {times} times the median patch, an artifact.",
        "patch_taken_for": {"foreground": "{where}: taken for foreground.", "background": "{where}: taken for background."},
        "patch_colours": "{where}: red {red}, green {green}, blue {blue} of the way from each component's least patch to its most.",
        # a whole map in words; what it reads and from where are parts of the sentences below them
        "region_of_map": "; the {ninth} of the picture holds {share} of it",
        "region_of_patches": "; the {ninth} of the picture holds {share} of what goes to patches",
        "map_of_class": {"even": "{title}: every patch alike.", "almost": "{title}: almost evenly, most in {spot}{region}.",
                         "most": "{title}: most in {spot}{region}."},
        "from_patches": {"even": "every patch alike", "almost": "almost evenly, most from {spot}", "most": "most from {spot}"},
        "from_token_and_patches": {"even": "most from {token} ({share}), of the patches from all alike",
                                   "almost": "most from {token} ({share}), of the patches almost evenly, most from {spot}",
                                   "most": "most from {token} ({share}), of the patches most from {spot}"},
        "by_patches": {"even": "by every patch alike", "almost": "almost evenly, most by {spot}", "most": "most by {spot}"},
        "map_rollout": "{title}: {token} gathers {from} ({share}, {times} times an even share){region}{rest}.",
        "map_rollout_rest": "; {share} comes from tokens that are no patch",
        "map_read_by": "{title}: {token} is read {by} ({share} of what that patch reads, {times} times an even share){rest}.",
        "map_read_by_sum": "; all readers together give it {sum} (an even share would be 1.00)",
        "map_read_by_sum_and_rest": "; all readers together give it {sum} (an even share would be 1.00), {rest} of it from tokens that are no patch",
        "map_reads": "{title}: {token} reads {from} ({share}, {times} times an even share){region}{rest}{sum}.",
        "map_reads_rest": "; {share} goes to tokens that are no patch",
        "map_reads_rest_each": "; {share} goes to tokens that are no patch ({each})",
        "map_reads_sum": "; all together {sum}",
        "similar_none": "there is no other patch.",
        "similar": "most alike {most} ({high}), least {least} ({low}), on average {mean}{rest}.",
        "similar_apart": "Features of two models cannot be compared, so each picture is compared with itself.",
        "coloured_patches": "{n} of {all} patches {n|is|are} taken for {part}; {told}",
        "coloured_none": "there is nothing to colour, because these patches are all alike.",
        "coloured_same": "coloured by the same components.",
        "coloured": {"one": "the one component there is holds {shares} of how the patches differ.",
                     "many": "the components hold {shares}, together {all} of how the patches differ."},
        "coloured_joint": {"one": "the one component there is holds {shares} of how the patches of both pictures differ. A colour means the same in both.",
                           "many": "the components hold {shares}, together {all} of how the patches of both pictures differ. A colour means the same in both."},
        "coloured_apart": "Features of two models cannot be compared: a colour does not mean the same in both.",
        "lengths": "the median patch {median}, the longest {longest} ({place}); {artifacts}.",
        "lengths_and_rest": "the median patch {median}, the longest {longest} ({place}); {artifacts}. Besides the patches: {rest}.",
        "artifacts": "{n} of {all} patches {n|is an artifact|are artifacts}, more than three times as long: {places}",
        "artifacts_none": "no patch is three times as long, so there are no artifacts",
        # the line beside the colour scale
        "measured": "{unit}, {scale}",
        "units": {"attention": "attention weight", "mean attention": "attention weight", "rollout": "rollout weight", "relevance": "relevance",
                  "occlusion": "fall of the probability", "similarity": "cosine similarity", "norms": "length after layer {layer}"},
        "scale_of_map": "scale of this map",
        "scale_of_head": "scale of this head",
        "scale_of_layer": "one scale for layer {layer}",
        "scale_of_this_layer": "one scale for this layer",
        "scale_stretched": "stretched over this map",
        "scale_whole": "the whole scale from opposite to the same",
        "scale_and_both": "{scale} and both pictures",
        "unit_colours": "red, green and blue are the first, second and third component, each from its least patch to its most",
        "unit_colours_both": "red, green and blue are the first, second and third component, each from its least patch to its most in both pictures",
        "mark_even": "{unit}; the mark is an even share, 1/{tokens}",
        "mark_similarity": "{unit}; the mark is 0, nothing in common",
        "mark_norms": "{unit}; the mark is three times the median patch",
        # controls under the picture
        "kinds_where": "Where it looks",
        "kinds_features": "Features",
        "layer_of_kind": {"rollout": "Up to layer {layer} of {all}", "norms": "After layer {layer} of {all}"},
        "fusions": {"mean": "mean", "min": "min", "max": "max"},
        "token": "Token",
        "average_patch": "average patch",
        "or_click": "or click a patch",
        "direction": "Direction",
        "directions": {"reads": "what it reads", "read_by": "who reads it"},
        "patches": "Patches",
        "patch_parts": {"all": "all", "foreground": "foreground", "background": "background"},
        "joined_by": "Heads joined by",
        "discard": "Discard the weakest {n}%",
        "discard_said": "the weakest {n} percent",
        "class": "Class",
        "second_class": "A second class beside it",
        "second_class_none": "no second class",
        "beside_it": "Beside it",
        "rescale": "Rescale each head",
        "stretch": "Stretch the colours",
        "grid": "Patch grid",
        "picture_with": "The picture with {title}",
        "picture_with_token": "The picture with {title}: {reads}",
        # comparing
        "compare_with": "Compare with",
        "compare": {"none": "nothing", "twin": "the untrained twin", "pinned": "the pinned result: {title}",
                    "surgery": "the picture after surgery"},
        "pinned": "pinned: {title}",
        "after_surgery": "after surgery",
        "shown_beside": {"twin": "trained", "box": "your model", "surgery": "before", "pinned": "this result"},
        "compare_wait": {"twin": "Drawing random weights …", "box": "Asking the model in the box …"},
        "flicker": "Flicker instead of side by side",
        "show_other": "Show the other one",
        "pin": "Pin this result",
        "pin_note": "Pinned. Now choose another picture or model, and compare.",
        "picture_through": "a picture through {model}",
        "twin_note": "The same architecture with random weights, never trained. What it shows as well was not learned.",
        "shapes_note": "The two models differ in layers or heads; the layer is bent to each one's range, and in the place of a head that a model does not have stands the mean of its heads.",
        # the wall and the heads
        "wall_text": "Layers downwards, heads across; {reads}. Choose one to see it large.",
        "wall_said": ("{layers} {layers|layer|layers} by {heads} {heads|head|heads}, one small map each. The largest weight on a patch is in layer {layer}, "
                      "head {head}: {most}."),
        "most_in": "most in {place}",
        "most_in_share": "most in {place}, {share}",
        "heads_of_layer": "All heads of layer {layer}",
        # the answer, and what the model sees
        "no_classes": "No classes: this model has no head",
        "true_label": "True label: {name}",
        "knows_one": "It knows one thing only, and always names it.",
        "knows_only": "It knows only these {count} things: whatever you show it, it names one of them.",
        "knows_none": "It describes pictures and names nothing. What it finds alike is shown by Similarity and Colours.",
        "ten": "ten",
        "names_one": "The one thing it knows",
        "names_all": "The {count} things it knows",
        "seen_cut": "{width} × {height} pixels, cut into {cols} × {rows} patches.",
        "seen_cut_and_joined": "{width} × {height} pixels, cut into {cols} × {rows} patches and joined by {joined}: {tokens} tokens.",
        "registers_n": "{n} {n|register|registers}",
        "seen_said": "The picture as the model gets it, {width} by {height} pixels",
        # testing a map
        "test_title": "Believe it or test it",
        "test_line": "Hide the patches that the map calls important, then as many at random: does the answer fall faster than by chance?",
        "test_run": "Test the map that is shown",
        "test_rank": "Rank five kinds of maps",
        "test_cancelled": "Cancelled: what was computed is kept, so that it goes on from there.",
        "hidden_by": "Hidden by",
        "hide_by": {"mean": "the picture's mean colour", "blur": "a strong blur", "drop": "dropping the tokens"},
        "way": "Way",
        "ways": {"out": "deletion: hide more and more", "in": "insertion: show more and more"},
        "test_about": "What this does, and when it misleads",
        "test_about_more": ("Patches are hidden in the order of the map, in up to 16 steps, and the model answers each time (deletion and insertion: "
                            "Petsiuk, Das and Saenko 2018, RISE). Twenty random orders say what chance would do: only a map whose area lies outside "
                            "their 5 to 95 % range says more than chance. It misleads because a picture with holes is unlike anything the model was "
                            "trained on; compare the ways of hiding. One picture is one picture."),
        "test_map": "Map: {title}.",
        "test_map_other": "Map: {title}. Not tested yet; what stands below was the test of another map.",
        "test_features": ("Similarity, colours and norms tell what the model makes of the patches, not which of them its answer depends on: choose "
                          "another kind of map to test it."),
        "test_no_classes": ("This model has no classes, so there is no probability to watch while patches are hidden: neither a test nor a ranking can "
                            "be made."),
        "test_hiding": "Hiding patches …",
        "test_progress": "{share}: {done} of {total} pictures with holes …",
        "test_progress_queue": "{share}: {done} of {total} pictures with holes … Others are before you.",
        "ranking_below": "The ranking is below.",
        "verdicts": {"better": "better than chance", "chance": "no better than chance", "worse": "worse than chance"},
        "share_of_patches": {"out": "share of patches hidden", "in": "share of patches shown"},
        "probability_of": "probability of {klass}",
        "even_share": "even share 1/{n}",
        "curve_random": "random (mean, 5–95%)",
        "curve_reversed": "least important first",
        "curve_map": "this map first",
        "picture_holes": {"out": "the picture with {n} of {all} patches hidden", "in": "the picture with {n} of {all} patches shown"},
        "test_step": {"out": ("{n} of {all} patches hidden: {klass} {map} in the order of the map, {random} in random order, {reversed} the least "
                              "important first."),
                      "in": ("{n} of {all} patches shown: {klass} {map} in the order of the map, {random} in random order, {reversed} the least "
                             "important first.")},
        "test_of": "{title}, for {klass}; hidden by {how}.",
        "test_area": {"out": ("Area under the curve: this map {area}; random orders {mean} (5 to 95 %: {low} to {high}); least important first "
                              "{reversed}. Lower is better."),
                      "in": ("Area under the curve: this map {area}; random orders {mean} (5 to 95 %: {low} to {high}); least important first "
                             "{reversed}. Higher is better.")},
        "rank_title": "Which map tells best what {klass} depends on in this picture",
        "rank_columns": ["map", "area", "verdict"],
        "rank_random": {"out": "Random orders: area {mean}, 5 to 95 %: {low} to {high}. Lower is better. Hidden by {how}.",
                        "in": "Random orders: area {mean}, 5 to 95 %: {low} to {high}. Higher is better. Hidden by {how}."},
        "test_verdict": "This map: {verdict}",
        "test_verdict_area": "{title}: area {area}, random orders {low} to {high}",
        # layer by layer
        "lens_title": "Layer by layer",
        "lens_line": ("What the model would answer if it stopped after each layer: the last norm and the head read its token early (the logit lens, "
                      "nostalgebraist 2020)."),
        "lens_misleads": ("It misleads because the head was trained for the last layer only: early layers may hold the answer in a form it cannot "
                          "read."),
        "lens_no_classes": "This model has no classes, so no head could say what it takes the picture for after a layer.",
        "lens_x": "after layer",
        "lens_y": "probability",
        "lens_chart": "Class probabilities from the first layer to the last",
        "lens_leads": "After layer {layer}: {shares}. Of these {klass} leads, as at the end.",
        "lens_leads_first": "After layer {layer}: {shares}. Of these {klass} leads; at the end it is {last}.",
        # head facts
        "facts_title": "Head facts",
        "facts_line": "Every dot is a head; choose one to see its map.",
        "fact": "Fact",
        "facts": {
            "entropy": {
                "name": "entropy (nats)",
                "line": "How spread out what the reader reads is: 0 when one token gets all, the logarithm of the number of tokens when all get the same.",
            },
            "effective": {
                "name": "effective number of tokens",
                "line": "The exponential of the entropy: over how many tokens the weights are spread, as if evenly.",
            },
            "distance": {
                "name": "mean attention distance (pixels)",
                "line": ("How far away, in pixels of the model's input, patches look from themselves (ViT paper, figure 7 right): the mean over all "
                         "patches of this one picture; the paper averages 128 pictures."),
            },
            "prefix": {
                "name": "share on tokens that are no patch",
                "line": ("How much of what it reads goes to class token, registers and their like instead of patches: heads that do nothing often rest "
                         "there."),
            },
        },
        "fact_dot": "layer {layer}, head {head}: {value}",
        "facts_x": "layer (its heads side by side)",
        "facts_chart": "{fact} of every head",
        "fact_even": "even: {value}",
        "fact_reader": "The reader is {token}, whatever token is chosen above.",
        "fact_now": "Layer {layer}, {heads}: {value}; even attention would give {even}.",
        # patch surgery
        "surgery_title": "Patch surgery",
        "surgery_line": "Hide, swap or shuffle patches and watch the class and the maps change; without positions, shuffling changes nothing.",
        "surgery_choose": "Click patches of the picture to choose them, or move there with the arrow keys and press x.",
        "surgery_hide": "Hide the chosen",
        "surgery_swap": "Swap two chosen",
        "surgery_shuffle": "Shuffle all patches",
        "surgery_undo": "Undo everything",
        "surgery_positions": "Remove the position embeddings",
        "surgery_tools": "The tools stand under the picture above.",
        "surgery_choose_first": "Choose patches first: click them in the picture.",
        "surgery_choose_two": "Choose exactly two patches to swap; {n} {n|is|are} chosen.",
        "surgery_looking": "Looking again …",
        "surgery_hidden": "{n} {n|patch|patches} hidden.",
        "surgery_moved": "Patches moved.",
        "surgery_without": "Without positions.",
        "surgery_outputs": {"logits": "logits", "average": "average patch", "token": "class token"},
        "surgery_changed": "The {what} changed by at most {change}.",
        "surgery_changed_without": "The {what} changed by at most {change} against the unmoved picture without positions.",
        "surgery_rounding": ("That is rounding and nothing else: without positions a Vision Transformer sees a bag of patches, so their order cannot "
                             "matter."),
        "surgery_before": "before",
        "surgery_before_without": "before, without positions",
        "surgery_after": "after",
        # filters and positions
        "embedding_title": "Filters and positions",
        "embedding_line": ("What the model brings along to every picture: its patch filters, and how alike two positions are to it (ViT paper, figure "
                           "7)."),
        "filters_group": "Small patterns of colour, one for each filter",
        "filters": "Filters",
        "filters_shown": {"principal": "principal components (as in the paper)", "filters": "the strongest filters themselves"},
        "filters_each": {"principal": "component {n} of {all}", "filters": "filter {n} of {all}"},
        "positions_none": "This model has no positions.",
        "positions_said": ("for each of {n} patch positions a small map of how similar all others are: neighbours {near} on average, any two "
                           "{all}"),
        "positions_rest": ("One small map per patch position: its cosine similarity with all others, dark -1, bright 1. A bright spot that sits where the "
                           "map sits, and bright rows and columns, show that the model learned where things are."),
        "positions_sines": "These positions are fixed sines, not learned.",
        "positions_two": "Position {one} and position {two}: similarity {value}.",
        # take it home
        "take_title": "Take it home",
        "take_line": "Save the map as a figure, all maps as numbers, or the whole viewer as one file that works offline.",
        "take_files": {"png": "This figure (PNG)", "svg": "This figure (SVG)", "sheet": "All heads in one sheet (PNG)", "npz": "Raw maps (.npz)",
                       "report": "Report (HTML, works offline)"},
        "take_hint": "The same without a page: python -m vitdemo.explain PHOTO --out FOLDER, or explain(picture, model) in Python.",
        "take_writing": "Writing the report …",
        "take_drawing": "Drawing …",
        # links
        "link_line": "Link",
        "link_copy": "Copy link to this view",
        "link_opening": "Opening the linked view …",
        "link_no_picture": "This picture stays with you: the link opens the example cat instead.",
        "link_no_model": "This model stays with you: the link opens the model in the box.",
        "link_no_part": "The part of the picture that was chosen stays here: the link looks at its middle.",
        "link_no_beside": "What stands beside the picture stays here.",
        # keys, and ways for those who use nothing else
        "keys": "Keys",
        "keys_work": "Letters and digits work as keys",
        "keys_listed": {
            "← ↑ → ↓": "move the patch", "[ ]": "layer down, up", "1 to 9": "head", ", .": "head before, after", "m": "mean of the heads",
            "r": "reads / is read by", "c or Esc": "back to the class token", "x": "choose the patch for surgery", "Esc": "in a sheet: close it",
            "?": "these keys",
        },
        "skip": "Skip to the content",
        "example": "Example: {name}",
        # the projector's screens
        "screens": {"picture": "the picture", "cut": "cut into patches", "answer": "the answer", "map": "where it looks", "heads": "all heads",
                    "wall": "the whole model", "class": "what speaks for it", "test": "does the map matter"},
        "opening": "Opening …",
        "what_is_this": "What is this?",
        "cut_into": "{rows} × {cols} = {n} {n|patch|patches}",
        "it_says": "It says: {name}",
        "keys_map": "↑ ↓ layer   [ ] head   o scale   u untrained",
        "keys_heads": "↑ ↓ layer   [ ] head",
        "keys_class": "↑ ↓ class",
        "keys_test": "t test this map",
        "high_own": "{number}, this map's own scale",
        "high_layer": "{number}, one scale for the layer",
        "heads": "Heads",
        "layer_and_count": "Layer {layer}: {n} {n|head|heads}",
        "layers_and_heads": "{layers} {layers|layer|layers} × {heads} {heads|head|heads}",
        "layers_down": "Layers down, heads across: {reads}",
        "relevance_most": "Class relevance: {most}",
        "does_it_matter": "Does the map matter?",
        "press_t": "Press t: the patches it calls important are hidden, one after the other. Does the answer fall?",
        "picture_under_map": "the picture under the map",
        # the picture input
        "no_picture": NO_PICTURE,
        "not_shown_here": "Your browser cannot show this file here.",
        "upload_too_large": "That file has {size}; at most {most} can be uploaded: make the picture smaller.",
        "first_of_many": "Of these {given} files the first was used.",
        "dropped_folder": "That is a folder: open it and drop one picture.",
        "dropped_text": "That is a link or text and not a picture: save the picture first, then drop its file.",
    },
    # Train
    "lab_front": {
        # the page before anything is known, and what is said to everybody
        "train_a_model": "Train a model",
        "close_message": "Close this message",
        "asking_computer": "Asking what this computer can do …",
        "server_back": "The server is back.",
        "server_asked_again": "The server does not answer. A run goes on without this page, which asks again by itself.",
        "model_saved": "Saved as {name} ({n} MB)",
        "files_left_out": "{n} {n|file was|files were} left out",
        "counted_once": "{n} {n|picture that was|pictures that were} there already {n|is|are} counted once",
        "states": {
            "queued": "Waiting", "starting": "Getting ready", "running": "Training", "finished": "Finished", "stopped": "Stopped", "failed": "Failed",
        },
        # one number, one button
        "length_asked": {
            "minutes": "You have {field} {n|minute|minutes}.",
            "epochs": "Train for {field} {n|pass|passes} over the pictures.",
            "steps": "Take {field} {n|step|steps}.",
        },
        "start_training": "Start training",
        "start_tuning": "Start fine-tuning",
        "minutes_slider": "Minutes, as a slider",
        "n_minutes": "{n} {n|minute|minutes}",
        "too_many_minutes": "Runs on this computer may take up to {n} {n|minute|minutes}: give a smaller number.",
        "give_minutes": "Give the minutes as a number up to {most}, such as 3 or 3.5.",
        "give_whole_length": {
            "epochs": "Give a whole number of passes, 1 or more.",
            "steps": "Give a whole number of steps, 1 or more.",
        },
        "timing_computer": "Timing a few training steps on this computer …",
        "learns_new": "A Vision Transformer with random weights learns from {pictures}, while you watch.",
        "learns_on": "It learns from {pictures}.",
        "begins_with": "It begins with {model}.",
        "begins_with_frozen": "It begins with {model}, whose encoder stays as it is.",
        "a_trained_model": "a trained model",
        "other_pictures": "Choose other pictures",
        "back_to_run": "Back to your run",
        "film_not_uploaded": "One of the pictures for the film could not be uploaded: take it away, or try again.",

        # everything else about a new run
        "advanced": "Advanced",
        "advanced_line": "other pictures, known recipes, fine-tuning, and every setting",
        "settings_changed": "{n} {n|setting|settings} changed",
        "pictures": "Pictures",
        "pictures_line": "What it learns to tell apart.",
        "pictures_to_learn": "Pictures to learn from",
        "how_long": "How long",
        "how_long_line": "The clock is fairest for a lesson; passes and steps make runs comparable.",
        "length_counted_in": "The length is counted in",
        "length_units": {"minutes": "minutes", "epochs": "passes (epochs)", "steps": "steps"},
        "begin_line": "Random weights learn from nothing; a trained encoder with a fresh head needs few pictures (fine-tuning).",
        "from_scratch": "random weights (from scratch)",
        "freeze_encoder": "Keep its encoder frozen: only the new head learns",
        "run_name": "Name",
        "run_name_line": "How the run is called in your list.",
        "run_name_hint": "Name of the run",
        "run_name_empty": "for your own list",
        "recipe": "Recipe",
        "recipe_line": "Settings that belong together. What somebody else reports and what was measured here are told apart.",
        "recipe_auto": "The one that fits your time",
        "recipe_auto_line": "Chosen by the program from what this computer manages.",
        "recipe_more": "Source and {n} more {n|measurement|measurements}",
        "recipe_source": "Source",
        "recipe_facts": {"source": "Source", "reported": "Reported", "measured": "Measured", "note": "Note"},
        "reported": "{share} of test pictures right (by the source, not by us)",
        "measured": "{share} of test pictures right after {time} with {threads} {threads|thread|threads}, {speed} images/s ({runs}, {machine})",
        "one_run": "one run",
        "mean_of_runs": "mean of {n} runs",
        "model_line": "How wide and deep the Vision Transformer is.",
        "model_size": "Model size",
        "as_recipe": "as the recipe says",
        "as_recipe_size": "as the recipe says: {size}",
        "every_setting": "Every setting",
        "every_setting_line": "An empty field is what the recipe says.",
        "setting_groups": {"model": "The model ({n})", "training": "The training ({n})", "pictures": "The pictures ({n})"},
        "recipe_says": "recipe: {value}",
        "give_pair": "Give rows and columns, such as 4 4, or one number for both.",
        "give_numbers": "Give numbers with spaces between them.",
        "give_whole": "Give a whole number.",
        "give_number": "Give a number.",
        "give_between": "Give a number from {low} to {high}.",
        "start_with_settings": "Start with these settings",
        "back_to_recipe": "Back to the recipe",

        # the pictures for its film
        "film_pictures": "Attention film",
        "film_pictures_line": ("At every look the film shows what all heads read in these pictures. Without your own: three photos (CIFAR-10), "
                               "or three pictures of the data."),
        "film_pick": "Pictures for the attention film",
        "choose_pictures": "Choose pictures",
        "film_full": "A film has at most {n} {n|picture|pictures}.",
        "file_larger": "{name} is larger than {n} MB.",
        "remove_file": "Remove {name}",

        # where the run stands
        "the_run": "The run",
        "loaded_model": "Loaded",
        "stopping": "Stopping",
        "best_kept": "The best weights so far are kept.",
        "small_cnn": "small CNN",
        "by_recipe": "recipe {name}",
        "begun_from": "from {model}",
        "trained": "trained",
        "in_line": "in line before it",
        "timing_first": "timing the first steps",
        "time_left": "left, tests included",
        "right_of_test_n": "of {n} test pictures right{error}",
        "right_of": {"test": "of test pictures right{error}", "validation": "of validation pictures right{error}"},
        "right_untrained": "right before any training",
        "images_a_second": "images a second",
        "passes_made": "passes over the pictures",
        "how_much_done": "How much of the run is done",
        "open_in_explore": "Open this model in Explore",
        "download_model": "Download the model",
        "model_saved_here": "{saved}. It says itself what it is: load it again here, or with the shell.",
        "new_run": "New run",
        "last_lines": "The last lines the run wrote",
        "all_read": "Every picture could be read.",

        # its curves
        "how_it_learns": "How it learns",
        "how_it_learns_line": "loss falls, accuracy rises",
        "curves_slider": "Loss and accuracy; left and right arrows go from look to look",
        "loss": "Loss",
        "right_on_validation": "Right on validation pictures",
        "no_point": "The first point comes after the first steps.",
        "point": "After {time}, step {step}",
        "loss_is": "loss {loss}",
        "right_here": "{share} right",
        "right_before": "{share} right at {time}",

        # pictures it never trains on, and its first layer
        "watched": "Pictures it never trains on",
        "watched_line": "what it calls them, as it learns",
        "picture_of_class": "A picture of the class {name}",
        "is_right": "right",
        "it_is": "it is: {name}",
        "n_of_all": "{n} of {all}",
        "watched_right": "{count} right {when}. The line below each is the share of the true class so far.",
        "before_any_training": "before any training",
        "after_time": "after {time}",
        "first_layer": "Inside the first layer",
        "first_layer_line": "its filters and its positions, at the start and at the look on show",
        "at_the_start": "at the start",
        "filters_line": ("Each square is one filter of the patch embedding, equation (1): the pattern of pixels it answers to. Grey is a weight of zero. "
                         "The same filters, in the same order, all the way."),
        "positions_line": ("One small map for each patch position: its cosine similarity with every other, dark -1, bright 1. Noise at the start; "
                           "rows and columns appear where it has learned what is near what."),
        "what_when": "{what} {when}",

        # the attention film
        "film": "The attention film",
        "film_line": "where it looks: from before the first step to now",
        "film_damaged": "The pictures of this film cannot be shown: they are damaged.",
        "film_empty": "No pictures were chosen for this film.",
        "film_of_file": "This model was loaded from a file: there is no film of its training.",
        "film_none": "This run ended before its first look, so there is no film of it.",
        "film_to_come": "The film begins with the first look at the untrained model.",
        "film_picture": "Picture",
        "layer": "Layer",
        "picture_at_step": "{name} at step {step}",
        "map_at_step": "{name}: {title}, what {reader} reads at step {step}, most in {place}, {share}",
        "cropped_away": "The pale part is cropped away: the model does not see it.",
        "film_scale": "attention weight, {scale}; the mark is an even share, 1/{tokens}",
        "scale_own": "scale of this look alone: looks cannot be compared by colour",
        "scale_all": "one scale for this map over all looks",
        "scale_so_far": "one scale for this map over all looks so far",
        "answer_at_look": "The answer at this look",
        "what_it_answers": "What it answers",
        "no_answer_yet": "no answer yet",
        "all_alike": "No answer yet: every class {share}",
        "labelled": {
            "open": "True label: {name}.", "right": "True label: {name}, so this is right.", "wrong": "True label: {name}, so this is wrong.",
        },
        "called": {
            "open": "The picture is called {name}.", "right": "The picture is called {name}, so this is right.",
            "wrong": "The picture is called {name}, so this is wrong.",
        },
        "unlabelled": "Nobody said what this picture shows; the model must name one of its {n} {n|class|classes}.",
        "film_without_attention": "This network has no attention, so its film shows only what it answers.",
        "all_maps": "All layers and heads",
        "all_maps_line": "Layers down, heads across; choose one.",
        "all_maps_at_step": ("one small map for each of {layers} {layers|layer|layers} and {heads} {heads|head|heads} at step {step}; "
                             "chosen: {title}"),
        "colour_names": {"cividis": "cividis", "viridis": "viridis", "gray": "grey"},
        "own_scale": "Own scale for every look",
        "as_model_sees": "As the model sees it",

        # its time
        "look_slider": "Look of the film",
        "film_start": "start",
        "look_n": "look {n}",
        "step_n": "step {n}",
        "right_on": "right on {share}",
        "start_random": "Start, random weights",
        "start_fresh_head": "Start, a fresh head",
        "look_of": "Look {n} of {all}",
        "film_now": "Now",
        "film_end": "End",
        "look_when": "{look}: step {step}, {time} of training, {passes} passes over the pictures",
        "look_right": "right on {share} ± {error} of the validation pictures",
        "random_weights": "random weights",
        "fresh_head": "a fresh head",
        "track_end": "end",
        "track_end_of_run": "end of the run",
        "track_loss": "loss",
        "track_accuracy": "accuracy (dashed)",
        "track_answers": "its answers, underlined where right",
        "no_answer": "no answer",
        "play": "Play",
        "pause": "Pause",
        "first_look": "First look",
        "look_back": "One look back",
        "look_on": "One look on",
        "last_look_button": "Last look",
        "back_to_now": "Back to now",
        "speed": "Speed",
        "speeds": ["slow", "{n} looks a second", "{n} looks a second", "fast"],
        "repeat": "Repeat",
        "film_keys_line": "Keys: ← → looks, space plays, [ ] layers, digits or , . heads, m the mean of the heads.",

        # what it shows, in words and to take along
        "brief_start": "Start",
        "brief_step": "Step {n}",
        "brief_map": "{title} reads from {patches}.",
        "about_patches": "about {n} of {all} {all|patch|patches}",
        "about_patches_most": "about {n} of {all} {all|patch|patches}, {share} of that in the {ninth}",
        "what_changed": "What changed",
        "by_now": "now",
        "by_end": "at the end",
        "every_class_alike": "every class alike ({share})",
        "answers_kept": "{name}: at the start {then}, {by} {after}.",
        "answers_turned": "{name}: at the start {then}, {by} {after}; it changed its answer {times} in between.",
        "once": "once",
        "n_times": "{n} times",
        "map_moved": "{title}: {reader} read from {then}; {by} from {after}. {share} of its attention went elsewhere.",
        "moved_most": "The head that moved most:",
        "layer_head_share": "layer {layer}, head {head} ({share})",
        "save_as": "Save as {format}",
        "save_film_line": "An animated picture of this film beside the loss, for slides: the picture, layer, head and speed that are chosen.",
        "drawing_film": "Drawing the film …",
        "watch_recorded": "Watch a recorded run",
        "watch_recorded_line": "No training, no waiting: a run that was recorded earlier, with its film.",

        # the second half: mistakes, runs, races, own pictures

        # a thing and what is said of it
        "what_value": "{what}: {value}",

        # what it got wrong, as a whole and by class
        "mistakes": "What it got wrong",
        "mistakes_line": "How often it is right, which classes it takes for which, and whether it knows when it is unsure.",
        "part_of_pictures": "Part of the pictures",
        "validation_part": "Validation, at every look",
        "test_part": "Test, once at the end",
        "about_test": "Pictures that played no part in training: neither to learn from nor to choose the best weights.",
        "test_not_looked_at": "The test part was not looked at: this run ended before.",
        "test_closed": "The test part stays closed until the run is over, so that nothing can be chosen by it.",
        "mistakes_of_file": "Nothing was measured here: this model was loaded from a file.",
        "mistakes_none": "This run ended before it was measured.",
        "mistakes_to_come": "The first look at the validation pictures is still to come.",
        "last_look": "The last look, step {step}.",
        "newest_look": "The newest look, step {step}.",
        "look_of_film": "Look {look} of {all}, as the film stands, step {step}.",
        "held_out": "Pictures held out from training; the weights that did best on them are kept, so this number flatters a little.",
        "accuracy_pane": "Accuracy",
        "right_within": "± {error} right",
        "named_wrongly": {
            "validation": "{wrong} of {n} validation pictures {wrong|was|were} named wrongly.",
            "test": "{wrong} of {n} test pictures {wrong|was|were} named wrongly.",
        },
        "standard_error": "± is one standard error: with other pictures of the same kind the number would differ about so much.",
        "guessing_right": "Guessing would be right {share} of the time.",
        "accuracy_by_class": "Accuracy of each class",
        "each_class": "Each class",
        "worst_first": "Worst first",
        "class_without": "no pictures",
        "class_all": "all of {n}",
        "class_none": "none of {n}",
        "class_share": "{share} ± {error}, n = {n}",

        # the confusion matrix
        "matrix": "Confusion matrix",
        "matrix_keys": "Confusion matrix. Arrow keys move through the cells, Enter shows their pictures.",
        "matrix_of_classes": "Confusion matrix of {n} classes",
        "matrix_title": "What it took for what",
        "matrix_hint": ("Rows: what the picture is. Columns: what the model said. "
                        "Tap or click a cell to see its pictures; arrow keys and Enter do the same."),
        "what_it_is": "What it is",
        "what_model_said": "What the model said",
        "taken_for": "taken for",
        "show_cell": "Show the pictures",
        "named_rightly": "{name} named rightly",
        "mistaken_for": "{truth} taken for {answer}",
        "cell_count": "{cell}: {count} of {all}",
        "cell_share": "{cell}: {count} of {all} ({share})",
        "legend_right": "right, 0",
        "legend_mistaken": "mistaken, 0",
        "share_of_row": "{share} of the row",
        "most_frequent": "Most frequent mistakes",

        # the pictures of one of its cells
        "cell_pane": "Pictures of one cell",
        "cell_at_step": "{cell}, step {step}",
        "cell_of_test": "{cell}, test",
        "show_what_it_reads": "Show what it reads",
        "fetching_pictures": "Fetching the pictures …",
        "newest_look_only": "Pictures are kept for the newest look only; there: {sentence}",
        "how_sure": "{share} sure",
        "cell_picture": "{cell}, {share} sure",
        "cell_scale": "attention weight, one scale for these pictures; layer {layer}, mean of the heads",

        # how sure it is
        "reliability": "Reliability",
        "reliability_title": "Does it know when it is unsure?",
        "reliability_hint": ("Answers sorted by the share the model gave them. A bar is how often they were right, the short line how sure the model was of "
                             "them. Bars below the dashed line: surer than it should be; above it: less sure. ECE is the mean distance from the line, "
                             "weighted by the number of answers (Guo et al. 2017, equation 3)."),
        "sure_enough": "On average it is {sure} sure and {right} right: that fits well.",
        "too_sure": "On average it is {sure} sure and {right} right: it is too sure of itself.",
        "too_unsure": "On average it is {sure} sure and {right} right: it is better than it believes.",
        "calibration_error": "Expected calibration error (ECE): {points} percentage points.",
        "same_in_numbers": "The same in numbers",
        "reliability_columns": ["sure", "answers", "mean confidence", "right"],
        "from_to": "{low} to {high}%",
        "reliability_across": "how sure it was; below, the number of answers",
        "share_right": "right",

        # the list of one's own runs
        "your_runs": "Your runs",
        "your_runs_line": "What you trained or loaded in this browser. Tick up to {most} to lay their curves over each other.",
        "no_runs": "No runs yet. Start one above, or load a checkpoint file that you or somebody else saved.",
        "runs_gone": "{n} of your runs {n|is|are} no longer on this computer; {n|it was|they were} taken off the list.",
        "n_runs": "{n} {n|run|runs}",
        "most_overlaid": "At most {most} runs can be laid over each other: untick one first.",

        # one run of that list
        "a_run": "A run",
        "from_file": "{state}, loaded from a file",
        "in_race": "race, side {side}",
        "trained_for": "{time} trained",
        "days_ago": "{n} {n|day|days} ago",
        "hours_ago": "{n} {n|hour|hours} ago",
        "minutes_ago": "{n} {n|minute|minutes} ago",
        "just_now": "just now",
        "what_differs": "What differs",
        "setting_none": "none",
        "setting_on": "on",
        "setting_off": "off",
        "and_more": "and {n} more",
        "of_test": "of test pictures",
        "of_validation": "of validation pictures",
        "with_near_copies": "{which}, near-copies among them",
        "hidden_until_vote": "hidden until you vote",
        "not_measured": "not measured here",
        "no_accuracy": "no accuracy yet",
        "lay_over": "Lay the curves of {title} over others",
        "watch": "Watch",
        "on_show": "On show",
        "explore": "Explore",
        "no_attention": "A CNN has no attention to look at.",
        "download_checkpoint": "Download the checkpoint",
        "go_on_training": "Go on training",
        "stop": "Stop",
        "tune_from": "Fine-tune from it",
        "delete": "Delete …",
        "delete_run": "Delete this run with its weights and its film for good?",
        "delete_it": "Delete it",
        "keep_it": "Keep it",
        "deleted": "Deleted.",
        "saved_whole": "{saved}: weights, settings, class names and where they come from in one file.",

        # a checkpoint file is loaded
        "load_checkpoint": "Load a checkpoint file",
        "kinds_of_checkpoints": "A .safetensors or .pt file, also one from timm, torchvision, DINO or Hugging Face.",
        "load_with_heads": "Load with these heads",
        "loaded": "Loaded.",

        # curves of several runs over each other
        "curves_over": "Curves over each other",
        "laid_out_by": "Curves laid out by",
        "by": "by",
        "by_seconds": "seconds",
        "by_steps": "steps",
        "minutes_of_training": "minutes of training",
        "seconds_of_training": "seconds of training",
        "training_loss": "training loss",
        "validation_accuracy": "validation accuracy",
        "curves_of": "{what} of {runs}",
        "no_curve": {"loss": "No loss yet.", "accuracy": "No accuracy yet."},
        "tick_another": "Tick another run to compare.",
        "same_settings": "Their settings are the same: what differs is chance.",
        "loss_is_mean": "Loss is a moving mean. One run each does not tell a small difference from chance: a race over three seeds does.",

        # a race is chosen
        "race": "A fair race",
        "race_line": "Two runs, one difference; same seed, same pictures in the same order. You vote before you look.",
        "race_tests": "What should be tested?",
        "a_or_b": "{a} or {b}",
        "both_get": {"seconds": "both get equally many seconds", "steps": "both get equally many steps"},
        "minutes_each": "Minutes for each run",
        "three_seeds": "Three seeds",
        "three_seeds_hint": "both sides three times, so that noise is not read as a win",
        "start_race": "Start the race",
        "takes": "Takes {time} in all.",
        "run_sealed": "That run is in a race: vote first, or show the race without voting.",

        # how it goes
        "race_progress": "Progress of the race",
        "race_asking": "Asking how it stands …",
        "race_next": "{over} of {all} runs done; the next one waits for its turn.",
        "race_going": "{over} of {all} runs done; now training: {going}.",
        "side_alone": "side {side}",
        "side_seed": "side {side}, seed {seed}",
        "minutes_left": "About {n} {n|minute|minutes} left.",
        "minute_left": "Less than a minute left.",
        "both_over": "Both runs are over.",
        "both_over_vote": "Both runs are over: now vote, then look.",
        "all_over": "All {n} runs are over.",
        "all_over_vote": "All {n} runs are over: now vote, then look.",
        "stop_race": "Stop the race",
        "same_three_seeds": "The same over three seeds",
        "another_race": "Another race",

        # the vote
        "vote_first": "Which one will know more pictures it has never seen? Vote before you look: until then curves and numbers stay hidden.",
        "your_vote": "Your vote",
        "side": "Side {side}",
        "no_difference": "No difference",
        "no_more_than_chance": "not more than chance",
        "show_unvoted": "Show without voting",
        "looked_unvoted": "You looked without voting.",
        "voted_none": "no difference",
        "voted": "You voted for {vote}.",
        "voted_for_chance": "You voted for {vote}: and no difference beyond chance was found.",
        "voted_one_run": "You voted for {vote}: one run each cannot tell.",
        "voted_cannot_tell": "You voted for {vote}: these runs cannot tell the two apart.",
        "voted_rightly": "You voted for {vote}: and that is what came out.",
        "voted_wrongly": "You voted for {vote}: it came out the other way.",

        # what came out
        "side_named": "{side}, {what}",
        "curves_by": "Curves by",
        "mean_of": "{mean} on average ({all})",
        "nothing_yet": "nothing yet",
        "whiskers": "Validation pictures; whiskers are one standard error.",
        "whiskers_and_means": "Validation pictures; whiskers are one standard error, long strokes the means.",
        "every_run": "Every run of the race",
        "race_columns": {"side": "side", "seed": "seed", "state": "state", "accuracy": "accuracy"},
        "watch_side": "Watch side {side}, seed {seed}",

        # one's own pictures
        "own_pictures": "Your own pictures",
        "own_pictures_line": "A few dozen pictures of two or more things, from files or the camera, make a classifier of your own in a minute.",
        "set_of_pictures": "Set of pictures",
        "set": "Set",
        "set_name": "Name",
        "set_name_hint": "Name of the set",
        "set_unnamed": "Without a name",
        "set_new": "A new set",
        "set_untitled": "My pictures",
        "set_in_sentence": "my pictures",
        "bring_zip": "Bring a .zip of class folders",
        "delete_set": "Delete this set …",
        "delete_set_sure": "Delete all pictures of this set for good?",
        "add_class": "Add a class",
        "add_class_hint": "another kind of thing",
        "drop_on_class": "Drop pictures onto the class they belong to.",
        "sending": "Sending {file} …",
        "looking_through": "Looking through {file} …",
        "own_privacy": ("Pictures go only to the computer that runs this page: those you collect here 256 pixels large on the shorter side, "
                        "a .zip whole."),
        "set_holds": "{n} {n|picture|pictures} in {classes} {classes|class|classes}.",
        "set_holds_most": "{n} {n|picture|pictures} in {classes} {classes|class|classes}; at most {most} {most|picture|pictures} here.",

        # one class of them
        "class_name": "Name of the class",
        "add_files": "Add files",
        "camera": "Camera",
        "remove": "Remove",
        "remove_class": "Remove this class with its pictures?",
        "keep": "Keep",
        "n_pictures": "{n} {n|picture|pictures}",
        "pictures_coming": "{n} {n|picture|pictures}, {waiting} on the way",
        "remove_picture": "Remove picture {n} of {name}",
        "class_twice": "There is a class {name} already: give this one another name.",
        "class_nameless": "A class needs a name.",
        "zip_on_class": "A .zip of class folders becomes a set of its own: bring it with the button above.",
        "many_left_out": "{n} files were left out: {some}; …",
        "from_picture": "the picture",
        "from_camera": "a picture of the camera",
        "why_large": "this browser cannot read it, and it is too large to be sent as it is",
        "why_unread": "it could not be read",
        "why_full": "a set may have at most {n} {n|picture|pictures} here",

        # the camera
        "camera_waiting": "Waiting for the camera …",
        "camera_sees": "What the camera sees, mirrored",
        "camera_hold": "Hold to take pictures",
        "camera_close": "Close the camera",
        "camera_other": "Other camera",
        "camera_hint": ("Pictures taken in one go are near-copies of each other, which makes the accuracy look better than it is: "
                        "let go, and move the thing or the camera, between them."),
        "camera_refused": {
            "NotAllowedError": "The browser was not allowed to use the camera: allow it beside the address, or add files instead.",
            "NotFoundError": "No camera was found: plug one in, or add files instead.",
            "NotReadableError": "The camera is in use by another program: close that, or add files instead.",
            "Insecure": "Browsers give the camera only to pages opened over https or on this very computer (localhost): add files instead.",
        },
        "camera_unusable": "The camera cannot be used: add files instead.",

        # from them to a run
        "own_training": "Train with these pictures",
        "tune": "Fine-tune",
        "tune_line": "a trained encoder with a fresh head; best with few pictures",
        "scratch": "Train from scratch",
        "scratch_line": "random weights; wants hundreds of pictures of each class",
        "begin_with": "Begin with",
        "freeze": "Keep its encoder frozen",
        "freeze_line": "only the new head learns: quickest",
        "own_minutes": "Minutes",
        "all_settings": "All settings",
        "too_few": "Give at least two classes two pictures each; a few dozen each make it useful.",
        "lonely": "{name} has one picture only: one more is needed, to check with.",
        "starting": "Starting …",
        "started": "Started: it is shown above.",
        "tuned_title": "{title}, fine-tuned",

        # the link to a look
        "copy_look": "Copy link to this look",
        "look_linked": "{map}, look {look}",

        # the screens of the projector
        "screen_run": "the run",
        "screen_accuracy": "the accuracy",
        "screen_loss": "the loss",
        "screen_watched": "pictures it never trains on",
        "screen_film": "the film",
        "screen_wall": "all layers and heads",
        "right_on_new": "Right on new pictures",
        "guessing": "guessing",
        "before_training": "Before training: {answer}",
        "after_training_for": "After {time}: {answer}",
        "no_classes": "no classes",
        "wall_axes": "Layers down, heads across",
        "film_keys": "p play   ⇧← ⇧→ look   ↑ ↓ layer   [ ] head",
        "nothing_to_show": "No run is on show: leave with Esc, then start one or watch the recorded one.",

        # the way through the page
        "parts_of_page": "Parts of this page",
        "top": "Top",
    },
    # the bar in which a model is chosen
    "model_front": {
        # the bar
        "looks_at": "It looks at",
        "side_px": "{side} × {side} px",
        "side_px_own": "{side} × {side} px, its own",
        "of_the_picture": "Of the picture",
        "fits": {"crop": "its middle", "pad": "all of it, on a plain ground", "whole": "all of it, in its own shape", "squash": "all of it, squeezed",
                 "part": "a part you choose"},
        # a part of the picture
        "part_keys": ("The part of your picture that the model looks at: drag it, or move it with the arrow keys and change its size with plus "
                      "and minus"),
        "part_size": "Size of the part",
        "part_hint": "Drag the frame or one of its corners; letting go looks again.",
        "part_small": "{cols} × {rows} pixels: all that the model gets of it.",
        "part_small_said": "The part at {cols} × {rows} pixels",
        "how_much": "How much has arrived",
        "about_model": "About this model",
        "back_to_box": "Back to the model in the box",
        # the list of models
        "on_this_computer": "On this computer",
        "your_own": "Your own",
        "to_download": "To download",
        "a_file": "A weights file of yours …",
        "a_repository": "A repository of the Hugging Face Hub …",
        "not_here": "{model} is not on this computer yet.",
        "download_size": "Download {size}",
        "not_now": "Not now",
        "gigabytes": "{n} GB",
        # a model on its way
        "the_model": "The model",
        "arrived": "{model}: {done} of {total} have arrived.",
        "asked_for": "{model}: asking for it …",
        "waits": "{model} waits for another download to end.",
        "being_loaded": "{model} is being loaded …",
        "not_loaded": "The model could not be loaded.",
        "try_again": "Try again",
        # weights that a person brings along
        "weights_file": "Weights file",
        "file_wanted": ("A .safetensors, .pt or .pth file of a plain Vision Transformer: this program's own, timm's, torchvision's, Hugging Face's, "
                        "DINO's. Drop it here, or choose it. It stays among your runs on the Train tab."),
        "choose_file": "Choose a file",
        "sending": "Sending {name} ({size}) …",
        "n_heads": "{n} {n|head|heads}",
        "load_it": "Load it",
        "repository": "Repository",
        "repository_wanted": ("Any repository of the Hub that holds a plain Vision Transformer as safetensors, for example "
                              "facebook/dino-vits16."),
        "repository_example": "user/repository",
        "download": "Download",
    },
}
