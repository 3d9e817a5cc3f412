#include "comm/make_collectives.h"

namespace convoy::comm {

std::unique_ptr<Collectives> make_collectives(kernels::Backend backend, const Communicator& ranks,
                                              Sums sums) {
  return backend == kernels::Backend::cuda ? make_nccl_collectives(ranks, sums) : make_mpi_collectives(ranks);
}

}  // namespace convoy::comm
