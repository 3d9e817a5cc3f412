// A reorder only copies here, because the reference backend has only one layout.
#include <algorithm>

#include "kernels/device/host_kernel.h"
#include "kernels/reorder/reorder.h"

namespace convoy::kernels::reference {

Kernel reorder_forward(const ReorderProblem&, KernelRequest& request) {
  reorder_ends(request);
  require_row_major("reorder_forward", request);
  return host_kernel([count = request.inputs[0].shape.elements()](const BoundOperands& operands) {
    std::copy_n(operands.in(0), count, operands.out(0));
  });
}

}  // namespace convoy::kernels::reference
