// Computes the gradient of a convolution's weights as a sum over pieces of the batch, in a fixed
// order. A batch may also be computed in slices of whole pieces: each slice adds its pieces to the
// sum of the slices before it. The result has the same bits.
#pragma once

#include "kernels/conv2d/conv2d.h"

namespace convoy::kernels {

using Conv2dMaker = Kernel(const Conv2dProblem& problem, KernelRequest& request);

// Makes the kernel of conv2d_backward_weights with problem.piece. `maker` makes the kernel of one
// piece.
Kernel backward_weights_in_pieces(Backend backend, Conv2dMaker* maker, const Conv2dProblem& problem,
                                  KernelRequest& request);

}  // namespace convoy::kernels
