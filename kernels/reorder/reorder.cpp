#include "kernels/reorder/reorder.h"

#include "kernels/device/host_kernel.h"

namespace convoy::kernels {
namespace {

bool are_rows_of(const Shape& rows, const Shape& image) {
  return image.rank() == 4 && rows == Shape{image[0], image[1] * image[2] * image[3]};
}

}  // namespace

ReorderEnds reorder_ends(KernelRequest& request) {
  const char* operation = "reorder_forward";
  require_counts(operation, request, 1, 1);
  ReorderEnds ends{request.inputs[0], request.outputs[0]};
  if (are_rows_of(ends.y.shape, ends.x.shape)) {
    require_layout(operation, request.outputs[0], Layout::row_major);
    ends.y.shape = ends.x.shape;
    ends.y.layout = Layout::row_major;
  } else if (are_rows_of(ends.x.shape, ends.y.shape)) {
    require_layout(operation, request.inputs[0], Layout::row_major);
    if (ends.y.layout == Layout::any) ends.y.layout = request.outputs[0].layout = Layout::row_major;
    ends.x.shape = ends.y.shape;
  } else {
    require_shape(operation, "y", ends.y, ends.x.shape);
  }
  return ends;
}

}  // namespace convoy::kernels
