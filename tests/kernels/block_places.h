// Finds out on which multiprocessors a GPU runs the blocks of a kernel.
#pragma once

#include <cuda_runtime_api.h>

namespace convoy::kernels::testing {

// Enqueues a kernel of `blocks` blocks. Each block adds 1 to the element of `counts`, in device
// memory, whose index is the number of its multiprocessor. A block lasts for at least 20
// microseconds, so the blocks spread over all multiprocessors that the stream may use.
void count_blocks(unsigned* counts, int blocks, cudaStream_t stream);

}  // namespace convoy::kernels::testing
