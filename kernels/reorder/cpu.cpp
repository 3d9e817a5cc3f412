// Changes layouts by oneDNN.
#include "kernels/device/host_kernel.h"
#include "kernels/device/onednn.h"
#include "kernels/reorder/reorder.h"

namespace convoy::kernels::cpu {

Kernel reorder_forward(const ReorderProblem&, KernelRequest& request) {
  require_counts("reorder_forward", request, 1, 1);
  require_shape("reorder_forward", "y", request.outputs[0], request.inputs[0].shape);
  onednn::Sequence sequence;
  sequence.reorder(onednn::input(0, onednn::desc_of(request.inputs[0])),
                   onednn::output(0, onednn::desc_of(request.outputs[0])));
  return sequence.kernel();
}

}  // namespace convoy::kernels::cpu
