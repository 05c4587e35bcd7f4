"""Where things lie: between the upright original, the part of it the model sees, and the patch grid."""

from dataclasses import dataclass
from math import ceil, floor, log

Edges = tuple[float, float, float, float]       # top, left, bottom, right, in pixels
WHOLE: Edges = (0.0, 0.0, 1.0, 1.0)             # all of a picture, as shares of its height and width


@dataclass(frozen=True)
class Geometry:
    """Where the model's patches lie on the upright picture. Sizes are (rows, cols), edges (top, left, bottom, right), in pixels."""

    original: tuple[int, int]
    crop: Edges                     # the part of the original the model sees
    size: tuple[int, int]           # of the model's input
    patch: tuple[int, int]

    @property
    def grid(self) -> tuple[int, int]:
        """Patches as (rows, cols)."""
        return self.size[0] // self.patch[0], self.size[1] // self.patch[1]

    def window(self, margin: float = 0.5) -> tuple[int, int, int, int]:
        """Edges of the part of the original worth showing: the crop and up to `margin` of its sides around it. A very long picture drawn
        whole would leave no room for the part that the model sees."""
        top, left, bottom, right = self.crop
        down, across = margin * (bottom - top), margin * (right - left)
        return (max(0, floor(top - down)), max(0, floor(left - across)), min(self.original[0], ceil(bottom + down)),
                min(self.original[1], ceil(right + across)))

    def patch_rectangle(self, row: int, col: int) -> Edges:
        """Edges of one patch on the original. Raises ValueError outside the grid."""
        rows, cols = self.grid
        if not (0 <= row < rows and 0 <= col < cols):
            raise ValueError(f"there is no patch in row {row}, column {col} of a grid of {rows} x {cols}")
        top, left, bottom, right = self.crop
        tall, wide = (bottom - top) / rows, (right - left) / cols
        return top + row * tall, left + col * wide, top + (row + 1) * tall, left + (col + 1) * wide

    def patch_at(self, down: float, across: float) -> tuple[int, int] | None:
        """(row, col) of the patch at a point of the original; None where the model does not look."""
        top, left, bottom, right = self.crop
        if not (top <= down < bottom and left <= across < right):
            return None
        rows, cols = self.grid
        row, col = int((down - top) / (bottom - top) * rows), int((across - left) / (right - left) * cols)
        return min(row, rows - 1), min(col, cols - 1)


def centred(picture: tuple[int, int], size: tuple[int, int], fraction: float) -> Edges:
    """Edges of the centred part of a `picture` (rows, cols) in the shape of `size`: `fraction` of the largest one.

    It is the part that torchvision and timm show, who first resize the whole picture, until an input is `fraction` of it, and then crop:
    both in whole pixels. Resized to `size` at once, it gives the same input. It may lie half a pixel of the input beside the exact centre,
    and one beside where Hugging Face's processors put it.
    """
    height, width = picture
    rows, cols = (floor(side / fraction + 1e-6) for side in size)           # 196 / (196 / 247) is a hair less than 247
    if height * cols < width * rows:
        cols = rows * width // height
    else:
        rows = cols * height // width
    top, left = round((rows - size[0]) / 2), round((cols - size[1]) / 2)
    return top * height / rows, left * width / cols, (top + size[0]) * height / rows, (left + size[1]) * width / cols


def whole_size(picture: tuple[int, int], size: tuple[int, int], patch: tuple[int, int]) -> tuple[int, int]:
    """The sides in pixels, multiples of `patch`, of an input that has nearly the shape of `picture` and at most as many patches as one of
    `size` has, each (rows, cols). A picture so thin that it would need less than one row or column of patches is shortened."""
    most = size[0] // patch[0] * (size[1] // patch[1])
    shape = picture[0] * patch[1] / (picture[1] * patch[0])                 # rows of patches for one column, in the picture's own shape

    def loss(grid: tuple[int, int]) -> float:
        bent, unused = abs(log(grid[0] / grid[1] / shape)), log(most / (grid[0] * grid[1]))
        return bent + unused / 2                                            # sooner some patches unused than a picture bent as much

    grids = [(rows, min(max(1, int(rows / shape) + more), most // rows)) for rows in range(1, most + 1) for more in (0, 1)]
    rows, cols = min(grids, key=loss)
    return rows * patch[0], cols * patch[1]
