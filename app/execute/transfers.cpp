#include "app/execute/transfers.h"

#include "kernels/device/device_memory.h"

namespace convoy::app {

comm::PreparedOperation* Transfers::prepare(const Transfer& end, void* data, const kernels::TensorDesc& desc,
                                            std::string_view label) {
  // Transfer the whole buffer, including channel padding, without converting it: both ranks have
  // the tensor in the same layout.
  const auto count = static_cast<std::int64_t>(desc.bytes() / kernels::bytes_of(desc.dtype));
  operations_.push_back(end.action == Transfer::Action::send_begin
                            ? stages_.prepare_send(data, count, desc.dtype, end.peer, label)
                            : stages_.prepare_receive(data, count, desc.dtype, end.peer, label));
  in_flight_.reserve(operations_.size());
  return of_program_[end.transfer] = operations_.back().get();
}

void Transfers::connect(kernels::Backend backend) {
  if (backend != kernels::Backend::cuda) return;
  for (const auto& operation : operations_) {
    operation->start({});
    operation->wait({});
  }
  kernels::synchronize(backend);
}

}  // namespace convoy::app
