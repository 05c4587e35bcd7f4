"""Where things lie: between the upright original, the part of it the model sees, and the patch grid."""

from dataclasses import dataclass
from math import ceil, floor


@dataclass(frozen=True)
class Geometry:
    """Where the model's patches lie on the upright picture. Sizes are (rows, cols), edges (top, left, bottom, right), in pixels."""

    original: tuple[int, int]
    crop: tuple[float, float, float, float]     # the part of the original the model sees
    size: tuple[int, int]                       # of the model's input
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

    def patch_rectangle(self, row: int, col: int) -> tuple[float, float, float, float]:
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
