#include "app/training/checkpoint/sha256.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <stdexcept>

namespace convoy::app {
namespace {

void check(int status, const char* call) {
  if (status != 1) throw std::runtime_error(fmt::format("OpenSSL: {} failed", call));
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr) throw std::runtime_error("OpenSSL: EVP_MD_CTX_new failed");
  check(EVP_DigestInit_ex(context_, EVP_sha256(), nullptr), "EVP_DigestInit_ex");
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

void Sha256::update(const void* data, std::size_t bytes) {
  check(EVP_DigestUpdate(context_, data, bytes), "EVP_DigestUpdate");
}

std::string Sha256::hex_digest() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  check(EVP_DigestFinal_ex(context_, digest, &size), "EVP_DigestFinal_ex");
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace convoy::app
