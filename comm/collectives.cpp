#include "comm/collectives.h"

namespace convoy::comm {

void Collectives::send(const void* data, std::int64_t count, DType type, int peer, Stream stream,
                       std::string_view label) {
  const auto operation = prepare_send(data, count, type, peer, label);
  operation->start(stream);
  operation->wait(stream);
}

void Collectives::receive(void* data, std::int64_t count, DType type, int peer, Stream stream,
                          std::string_view label) {
  const auto operation = prepare_receive(data, count, type, peer, label);
  operation->start(stream);
  operation->wait(stream);
}

}  // namespace convoy::comm
