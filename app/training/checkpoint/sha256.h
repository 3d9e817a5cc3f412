// Computes SHA-256 (FIPS 180-4) with OpenSSL's libcrypto. Bytes can be added step by step.
#pragma once

#include <cstddef>
#include <string>

struct evp_md_ctx_st;

namespace convoy::app {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(const void* data, std::size_t bytes);
  // Returns 64 lower-case digits. The object cannot be used afterwards.
  std::string hex_digest();

 private:
  evp_md_ctx_st* context_;
};

}  // namespace convoy::app
