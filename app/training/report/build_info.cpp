#include "app/training/report/build_info.h"

#include <fmt/core.h>
#include <hdf5.h>
#include <mpi.h>
#include <oneapi/dnnl/dnnl.h>
#include <openssl/crypto.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "build_info_values.h"

namespace convoy::app {
namespace {

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) throw std::runtime_error("MPI names no version");
  const std::string version(text, static_cast<std::size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

std::string hdf5_version() {
  unsigned major = 0, minor = 0, release = 0;
  if (H5get_libversion(&major, &minor, &release) < 0) throw std::runtime_error("HDF5 names no version");
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace

const char* convoy_version() { return CONVOY_VERSION; }
const char* git_hash() { return CONVOY_COMMIT; }

std::vector<std::pair<std::string, std::string>> library_versions() {
  const dnnl_version_t* dnnl = dnnl_version();
  return {{"MPI", mpi_version()},
          {"HDF5", hdf5_version()},
          {"oneDNN", fmt::format("{}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch)},
          {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
          {"CLI11", CLI11_VERSION},
          {"nlohmann/json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                        NLOHMANN_JSON_VERSION_PATCH)}};
}

std::vector<std::pair<std::string, std::string>> build_settings() {
  return {{"compiler", fmt::format("{}", __VERSION__)},
          {"build type", CONVOY_BUILD_TYPE},
          {"cuda", CONVOY_WITH_CUDA}};
}

}  // namespace convoy::app
