// SHA-256 (FIPS 180-4) by OpenSSL's libcrypto, over bytes that are added step by step.
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
  std::string hex_digest();  // 64 lower-case digits; ends the use of the object

 private:
  evp_md_ctx_st* context_;
};

}  // namespace convoy::app
