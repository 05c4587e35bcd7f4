const TALLEST = 560;       // CSS pixels of the large picture's height

// The patch of the result on screen at a pointer event over a canvas that shows `about`, or null outside of what the model sees.
function patchAt(event, canvas, about) {
  const box = canvas.getBoundingClientRect(), [top, left, bottom, right] = about.crop;
  const y = (event.clientY - box.top) * about.height / box.height, x = (event.clientX - box.left) * about.width / box.width;
  if (!(y >= top && y < bottom && x >= left && x < right)) return null;
  return Math.floor((y - top) / (bottom - top) * result.rows) * result.cols + Math.floor((x - left) / (right - left) * result.cols);
}
