// Changes layouts with oneDNN.
#include "kernels/device/onednn.h"
#include "kernels/reorder/reorder.h"

namespace convoy::kernels::cpu {

Kernel reorder_forward(const ReorderProblem&, KernelRequest& request) {
  const ReorderEnds ends = reorder_ends(request);
  onednn::Sequence sequence;
  sequence.reorder(onednn::input(0, onednn::desc_of(ends.x)), onednn::output(0, onednn::desc_of(ends.y)));
  return sequence.kernel();
}

}  // namespace convoy::kernels::cpu
