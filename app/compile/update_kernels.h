// The kernels behind backward: the optimizer's over the flat buffers, and those that clip the gradient first.
#pragma once

#include <algorithm>
#include <cstddef>

#include "app/execute/model_memory.h"
#include "app/execute/session.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

struct UpdateKernels {
  kernels::Kernel update, norm, clip;
  // They run one after the other.
  std::size_t workspace_bytes() const { return std::max(update.workspace_bytes, norm.workspace_bytes); }
};

// For the parameters of `flat`; none for none. `control` must outlive the kernels.
UpdateKernels make_update_kernels(const SessionOptions& options, const FlatLayout& flat,
                                  const kernels::StepControl* control);

}  // namespace convoy::app
